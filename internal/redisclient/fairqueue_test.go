package redisclient

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func aFlow() Flow { return Flow{Owner: uuid.New()} }

// arrive enqueues so many calls of a flow at a moment, and returns how many may wait to be served.
func arrive(r *fairQueue, f Flow, calls int, at time.Time) (admitted int) {
	for range calls {
		p := &pendingCall{flow: f}
		if r.hasRoom(f, func() time.Time { return at }) {
			r.add(p)
			admitted++
		} else {
			r.addBeyond(p)
		}
	}
	return admitted
}

// serve takes so many out of the row, and counts them by flow.
func serve(r *fairQueue, calls int) map[Flow]int {
	served := map[Flow]int{}
	for range calls {
		if p := r.take(); p != nil {
			served[p.flow]++
		}
	}
	return served
}

func TestFlowsTakeTurns(t *testing.T) {
	t.Parallel()
	r := &fairQueue{room: 1000}
	now := time.Now()
	flood, some, one := aFlow(), aFlow(), aFlow()
	revocations := Flow{flood.Owner, 1} // of the same organization
	arrive(r, flood, 900, now)
	arrive(r, some, 10, now)
	arrive(r, one, 1, now)
	arrive(r, revocations, 1, now)
	served := serve(r, 22)
	if served[one] != 1 || served[revocations] != 1 || served[some] != 10 || served[flood] != 10 {
		t.Errorf("of 22, %d of the flood, %d of some, %d of one, %d revocations", served[flood], served[some], served[one], served[revocations])
	}
	if served := serve(r, 1000); served[flood] != 890 || r.waiting != 0 || len(r.queues) != 0 || r.last != nil {
		t.Errorf("%d of the flood, then %d wait in %d queues", served[flood], r.waiting, len(r.queues))
	}
}

func shed(r *fairQueue, calls int) {
	for range min(calls, r.overflow.length) {
		r.fromBeyond(r.overflow.takeFirst())
	}
}

func TestABurstMayWaitAndASustainedOverloadIsShed(t *testing.T) {
	t.Parallel()
	const room, tight = 1000, 300
	r := &fairQueue{room: room, tight: tight}
	f, now := aFlow(), time.Now()
	wantEqual(t, "admitted of a burst", arrive(r, f, burst, now), burst)
	serve(r, burst)
	for range 100 * burst / room { // twice what is served, for long enough to use up every credit
		now = now.Add(10 * time.Millisecond)
		arrive(r, f, 2*maxBatch, now)
		serve(r, maxBatch)
		shed(r, maxBatch/servedPerShed)
	}
	if r.waiting > tight {
		t.Errorf("%d wait to be served, want %d at the most", r.waiting, tight)
	}
	shed(r, r.overflow.length)
	serve(r, r.waiting)
	if admitted := arrive(r, f, burst, now); admitted != room || len(r.beyond) != 1 || r.beyond[f] != burst-room {
		t.Errorf("%d of another burst are admitted at once, want %d; beyond: %v", admitted, room, r.beyond)
	}
	shed(r, r.overflow.length)
	serve(r, r.waiting)
	now = now.Add(restTime + time.Millisecond)
	if admitted := arrive(r, f, burst, now); admitted != burst || len(r.beyond) != 0 {
		t.Errorf("%d of another burst after a rest; beyond: %v", admitted, r.beyond)
	}
}

// The calm clients' share is one of the whole room.
func TestAClientWithFewWaitingRequestsIsAcceptedDuringAFlood(t *testing.T) {
	t.Parallel()
	const room, tight = 500, 100
	r := &fairQueue{room: room, tight: tight}
	now := time.Now()
	flood := aFlow()
	arrive(r, flood, 2*room+burst, now)
	for range 4 {
		wantEqual(t, "admitted", arrive(r, aFlow(), room/8, now), room/8)
	}
	wantEqual(t, "admitted of the flood beyond its share", arrive(r, flood, 1, now), 0)
	for r.queues[flood].length*len(r.queues) >= tight {
		serve(r, 1)
	}
	wantEqual(t, "admitted of the flood's share", arrive(r, flood, 1, now), 1)
	wantEqual(t, "admitted, though there is room for more than a share", arrive(r, aFlow(), tight, now), tight)
}

// Of the overflow, the newest can still be served because the oldest have waited too long; the oldest are shed.
func TestOverflowIsServedOnlyWhenNoOtherCallWaits(t *testing.T) {
	t.Parallel()
	r := &fairQueue{room: 1}
	f := aFlow()
	admitted, older, newer := &pendingCall{flow: f}, &pendingCall{flow: f}, &pendingCall{flow: f}
	r.addBeyond(older)
	r.addBeyond(newer)
	r.add(admitted)
	if got := []*pendingCall{r.take(), r.take(), r.take(), r.take()}; !slices.Equal(got, []*pendingCall{admitted, newer, older, nil}) {
		t.Errorf("they are taken in another order: %v", got)
	}
}

// Whatever is added and removed, each call is taken once, and the calls of a flow in their order.
func TestAFairQueueLosesNoCall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &fairQueue{room: 4}
		flows := []Flow{aFlow(), aFlow(), aFlow()}
		in := map[Flow][]*pendingCall{}
		count := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			f := flows[rapid.IntRange(0, 2).Draw(t, "flow")]
			switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
			case step <= 1:
				p := &pendingCall{flow: f}
				r.add(p)
				in[f] = append(in[f], p)
				count++
			case step == 2 && count == 0:
				if p := r.take(); p != nil {
					t.Fatalf("none waits, taken: %v", p)
				}
			case step == 2:
				p := r.take()
				if p == nil || in[p.flow][0] != p {
					t.Fatalf("%d wait, taken out of order: %v", count, p)
				}
				in[p.flow] = in[p.flow][1:]
				count--
			case len(in[f]) == 0:
				if r.remove(&pendingCall{flow: f}) {
					t.Fatal("a caller left who was not there")
				}
			default:
				i := rapid.IntRange(0, len(in[f])-1).Draw(t, "who")
				if !r.remove(in[f][i]) {
					t.Fatal("who wanted to leave was not found")
				}
				in[f] = slices.Delete(slices.Clone(in[f]), i, i+1)
				count--
			}
			if r.waiting != count {
				t.Fatalf("%d wait, want %d", r.waiting, count)
			}
		}
		for ; count > 0; count-- {
			if r.take() == nil {
				t.Fatalf("%d were lost", count)
			}
		}
		if r.take() != nil || len(r.queues) != 0 {
			t.Fatal("a caller was taken twice")
		}
	})
}
