package redisstore

import "time"

// row is the commands that wait for a pipeline: a queue for each flow, which take turns, as in fair queueing (RFC 8290
// without its hashing). Who has many waiting makes only the own queue longer.
type row struct {
	queues  map[flow]*queue
	last    *queue // of the ring of queues that somebody waits in; the one after it has the next turn
	spare   *queue // queues that were emptied, to be used again
	waiting int    // in all queues

	excess line // who came beyond that, and is turned away unless there is room in the end

	room    int       // how many may wait before shares count; see admits
	credit  int       // how many may still come beyond it
	crowded time.Time // when somebody came beyond it last
}

// queue is the commands of one flow, in order of arrival.
type queue struct {
	of   flow
	next *queue // of the ring, or of the spare ones
	line
}

// line is passengers in order of arrival. Each stands in one line at the most.
type line struct {
	first, last *passenger
	length      int
}

func (l *line) add(p *passenger) {
	if l.last == nil {
		l.first = p
	} else {
		l.last.behind, p.before = p, l.last
	}
	l.last = p
	l.length++
}

// takeFirst returns who has waited longest; there must be somebody.
func (l *line) takeFirst() *passenger { return l.drop(l.first) }

// takeLast returns who came last; there must be somebody.
func (l *line) takeLast() *passenger { return l.drop(l.last) }

func (l *line) drop(p *passenger) *passenger {
	if p.before == nil {
		l.first = p.behind
	} else {
		p.before.behind = p.behind
	}
	if p.behind == nil {
		l.last = p.before
	} else {
		p.behind.before = p.before
	}
	p.before, p.behind = nil, nil
	l.length--
	return p
}

// remove takes out one from wherever it stands, and returns false when it stands elsewhere.
func (l *line) remove(p *passenger) bool {
	for at := l.first; at != nil; at = at.behind {
		if at == p {
			l.drop(p)
			return true
		}
	}
	return false
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
	q.add(p)
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

// take returns whose turn it is, and nil when nobody waits. When nobody waits any more who was admitted, the last who was not
// still can be served: who came earlier has waited long.
func (r *row) take() *passenger {
	switch {
	case r.last == nil && r.excess.length == 0:
		return nil
	case r.last == nil:
		return r.excess.takeLast()
	}
	q := r.last.next
	p := q.takeFirst()
	r.waiting--
	if q.length > 0 {
		r.last = q // the others have their turns before its next
	} else {
		r.end(q, r.last)
	}
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
	if q == nil || !q.remove(p) {
		return r.excess.remove(p)
	}
	r.waiting--
	if q.length == 0 {
		before := q
		for before.next != q {
			before = before.next
		}
		r.end(q, before)
	}
	return true
}
