package redisstore

import "time"

// row is the commands that wait for a pipeline: a queue for each flow, which take turns, as in fair queueing (RFC 8290
// without its hashing). Who has many waiting makes only the own queue longer.
type row struct {
	queues  map[flow]*queue
	last    *queue // of the ring of queues that somebody waits in; the one after it has the next turn
	spare   *queue // queues that were emptied, to be used again
	waiting int    // in all queues

	room    int       // how many may wait before shares count; see admits
	credit  int       // how many may still come beyond it
	crowded time.Time // when somebody came beyond it last
}

// queue is the commands of one flow, in order of arrival.
type queue struct {
	of          flow
	next        *queue // of the ring, or of the spare ones
	first, last *passenger
	length      int
}

// A standing queue makes everybody wait and nothing faster. So beyond the room, which is what is served in a short time, a
// flow may have its share of the room waiting and no more. A burst is no standing queue: laneBurst may come beyond the
// room, once, until nobody has come beyond it for restTime. All the agents of a large fleet at once are no more than that.
const (
	laneBurst = 10_000
	restTime  = time.Second
)

// admits says whether one more of the flow may wait.
func (r *row) admits(f flow, now func() time.Time) bool {
	if r.waiting < r.room {
		return true
	}
	at := now()
	if at.Sub(r.crowded) > restTime {
		r.credit = laneBurst
	}
	r.crowded = at
	own, flows := 1, len(r.queues)
	if q := r.queues[f]; q != nil {
		own += q.length
	} else {
		flows++
	}
	if own*flows <= r.room {
		return true
	}
	if r.credit > 0 {
		r.credit--
		return true
	}
	return false
}

func (r *row) add(p *passenger) {
	q := r.queues[p.flow]
	if q == nil {
		q = r.begin(p.flow)
	}
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
	q.length++
	r.waiting++
}

// begin gives a flow a queue, which has its turn after all others.
func (r *row) begin(f flow) *queue {
	q := r.spare
	if q == nil {
		q = &queue{}
	} else {
		r.spare = q.next
	}
	q.of = f
	if r.queues == nil {
		r.queues = map[flow]*queue{}
	}
	r.queues[f] = q
	if r.last == nil {
		q.next = q
	} else {
		q.next, r.last.next = r.last.next, q
	}
	r.last = q
	return q
}

// take returns whose turn it is, and nil when nobody waits.
func (r *row) take() *passenger {
	if r.last == nil {
		return nil
	}
	q := r.last.next
	p := q.first
	q.first, p.next = p.next, nil
	q.length--
	r.waiting--
	if q.length > 0 {
		r.last = q // the others have their turns before its next
		return p
	}
	q.last = nil
	r.end(q, r.last)
	return p
}

// end takes an empty queue out of the ring, in which it stands after before.
func (r *row) end(q, before *queue) {
	if before == q {
		r.last = nil
	} else {
		before.next = q.next
		if r.last == q {
			r.last = before
		}
	}
	delete(r.queues, q.of)
	q.next, r.spare = r.spare, q
}

// remove takes out one who will not wait any longer, and returns false when it does not wait.
func (r *row) remove(p *passenger) bool {
	q := r.queues[p.flow]
	if q == nil {
		return false
	}
	var before *passenger
	at := q.first
	for ; at != p; before, at = at, at.next {
		if at == nil {
			return false
		}
	}
	if before == nil {
		q.first = p.next
	} else {
		before.next = p.next
	}
	if q.last == p {
		q.last = before
	}
	p.next = nil
	q.length--
	r.waiting--
	if q.length == 0 {
		previous := q
		for previous.next != q {
			previous = previous.next
		}
		r.end(q, previous)
	}
	return true
}
