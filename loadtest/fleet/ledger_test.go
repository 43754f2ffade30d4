package fleet

import (
	"errors"
	"testing"

	"remit/money"
)

// The ledger bounds an answer by what was acknowledged before the request, and by what can have happened since.
func TestLedger(t *testing.T) {
	var l ledger
	of := func(count int64, value money.MicroUSD) effect { return effect{charge: charge{count, value}} }
	ok, lost, noRoom := done(), reply{err: errors.New("gone")}, overLimit(limitValue)
	if before := l.send(of(1, 10)); before != (effect{}) {
		t.Errorf("before the first: %v", before)
	}
	l.send(of(2, 20))
	l.send(of(4, 40))
	l.finish(of(1, 10), of(1, 10), ok)
	if possible := l.possible(); possible != of(7, 70) {
		t.Errorf("possible with two in flight: %v", possible)
	}
	l.finish(of(2, 20), of(2, 20), noRoom)
	if possible := l.possible(); possible != of(5, 50) {
		t.Errorf("what is refused is not possible, got %v", possible)
	}
	l.finish(of(4, 40), of(4, 40), lost)
	if possible := l.possible(); possible != of(5, 50) {
		t.Errorf("a request of unknown outcome is possible, got %v", possible)
	}
	if before := l.send(of(8, 80)); before != of(1, 10) {
		t.Errorf("before is what was acknowledged, got %v", before)
	}
	l.finish(of(8, 80), of(8, 80), problemReply(400, `"code":"invalid_request"`))
	want := entries{
		acknowledged: tally{1, of(1, 10)}, unknown: tally{1, of(4, 40)}, byValue: tally{1, of(2, 20)},
	}
	if got := l.sums(); got != want {
		t.Errorf("sums %+v, want %+v", got, want)
	}
}

// An acknowledged request may have done less than it requested. One of unknown outcome counts with all that it requested.
func TestLedgerRecordsAcknowledgedActions(t *testing.T) {
	var l ledger
	requested := effect{flow: flow{committed: 1, freed: 10, spent: 30, over: 20}}
	did := effect{flow: flow{committed: 1, freed: 10, spent: 25, over: 5}}
	l.send(requested)
	l.finish(requested, did, done())
	if possible := l.possible(); possible != did {
		t.Errorf("acknowledged: %+v", possible)
	}
	l.send(requested)
	l.finish(requested, did, reply{err: errors.New("gone")})
	if possible := l.possible(); possible != did.plus(requested) {
		t.Errorf("unknown outcome: %+v", possible)
	}
}

// While value moves from held to used and back, each answer lies between the acknowledged and the possible state.
func TestWindow(t *testing.T) {
	w := window{
		before:   effect{charge{5, 10}, flow{held: 100, freed: 30, spent: 20, returned: 5, over: 3, overReturned: 1}},
		possible: effect{charge{9, 15}, flow{held: 140, freed: 60, spent: 45, returned: 12, over: 9, overReturned: 2}},
	}
	if got, want := w.least(), (state{count: 5, used: 10 + 20 - 12, held: 100 - 60, over: 3 - 2}); got != want {
		t.Errorf("least %+v, want %+v", got, want)
	}
	if got, want := w.most(), (state{count: 9, used: 15 + 45 - 5, held: 140 - 30, over: 9 - 1}); got != want {
		t.Errorf("most %+v, want %+v", got, want)
	}
}
