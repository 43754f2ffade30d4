package redisclient

import (
	"time"
)

// fairQueue is the calls that wait for a pipeline: a queue for each flow, which take turns, as in fair queueing (RFC 8290
// without its hashing). A flow with many calls makes only its own queue longer.
type fairQueue struct {
	queues  map[Flow]*flowQueue
	last    *flowQueue // of the ring of queues that are not empty; the one after it has the next turn
	spare   *flowQueue // empty queues, to be used again
	waiting int        // in all queues

	overflow callList     // calls beyond that, which are shed unless there is room in the end
	beyond   map[Flow]int // how many calls of a flow are in the overflow

	room    int       // how many may wait before shares count; see hasRoom
	tight   int       // the room for newcomers while more wait than that: the next pipeline
	credit  int       // how many may still come beyond the room
	crowded time.Time // when the last call beyond it arrived
}

// flowQueue is the calls of one flow, in order of arrival.
type flowQueue struct {
	of   Flow
	next *flowQueue // of the ring, or of the spare ones
	callList
}

// A standing queue makes all calls wait and none faster. So beyond the room a flow may have only its share of the room waiting.
// A burst is no standing queue: burst calls may come beyond the room, once, until none has come beyond it for restTime. All the
// agents of a large fleet at once are no more than that.
//
// A flow that has more than that waiting, the calls to be shed included, is an overload. Then its newcomers fill only the tight
// room, which is the next pipeline: so a call that is served has waited little, however long the others wait for their refusal.
const (
	burst    = 10_000
	restTime = time.Second
)

// hasRoom says whether one more call of the flow may wait to be served.
func (q *fairQueue) hasRoom(f Flow, now func() time.Time) bool {
	if q.waiting < q.room && (q.beyond[f] == 0 || q.length() < q.room) {
		return true
	}
	at := now()
	if at.Sub(q.crowded) > restTime {
		q.credit = burst
	}
	q.crowded = at
	own, flows := 1, len(q.queues)
	if of := q.queues[f]; of != nil {
		own += of.length
	} else {
		flows++
	}
	if (own+q.beyond[f])*flows <= q.room {
		return true
	}
	if q.credit > 0 {
		q.credit--
		return true
	}
	return q.waiting < q.tight || own*flows <= q.tight
}

// addBeyond adds a call that has no room.
func (q *fairQueue) addBeyond(p *pendingCall) {
	if q.beyond == nil {
		q.beyond = map[Flow]int{}
	}
	q.overflow.add(p)
	q.beyond[p.flow]++
}

// fromBeyond notes that a call is no longer in the overflow, and returns it.
func (q *fairQueue) fromBeyond(p *pendingCall) *pendingCall {
	if q.beyond[p.flow]--; q.beyond[p.flow] == 0 {
		delete(q.beyond, p.flow)
	}
	return p
}

func (q *fairQueue) add(p *pendingCall) {
	of := q.queues[p.flow]
	if of == nil {
		of = q.begin(p.flow)
	}
	of.add(p)
	q.waiting++
}

// begin adds a queue for a flow, which has its turn after all others.
func (q *fairQueue) begin(f Flow) *flowQueue {
	of := q.spare
	if of == nil {
		of = &flowQueue{}
	} else {
		q.spare = of.next
	}
	of.of = f
	if q.queues == nil {
		q.queues = map[Flow]*flowQueue{}
	}
	q.queues[f] = of
	if q.last == nil {
		of.next = of
	} else {
		of.next, q.last.next = q.last.next, of
	}
	q.last = of
	return of
}

// take returns the call whose turn it is, and nil when none waits. When only overflow is left, the call that came last goes
// first: it has the most time left.
func (q *fairQueue) take() *pendingCall {
	switch {
	case q.last == nil && q.overflow.length == 0:
		return nil
	case q.last == nil:
		return q.fromBeyond(q.overflow.takeLast())
	}
	of := q.last.next
	p := of.takeFirst()
	q.waiting--
	if of.length > 0 {
		q.last = of // the others have their turns before its next
	} else {
		q.end(of, q.last)
	}
	return p
}

// end removes an empty queue from the ring, in which it follows before.
func (q *fairQueue) end(of, before *flowQueue) {
	if before == of {
		q.last = nil
	} else {
		before.next = of.next
		if q.last == of {
			q.last = before
		}
	}
	delete(q.queues, of.of)
	of.next, q.spare = q.spare, of
}

// remove takes out a call that will not wait any longer, and returns false when it does not wait.
func (q *fairQueue) remove(p *pendingCall) bool {
	of := q.queues[p.flow]
	if of == nil || !of.remove(p) {
		left := q.overflow.remove(p)
		if left {
			q.fromBeyond(p)
		}
		return left
	}
	q.waiting--
	if of.length == 0 {
		before := of
		for before.next != of {
			before = before.next
		}
		q.end(of, before)
	}
	return true
}

// length returns how many calls wait, with the overflow.
func (q *fairQueue) length() int { return q.waiting + q.overflow.length }

// Flow says who a call is made for. Calls of one flow wait for one another, and each flow has an equal share of Redis when
// more calls come than it can serve. Flows are only compared: neither field means anything to the client.
type Flow struct {
	Owner [16]byte
	Kind  byte
}
