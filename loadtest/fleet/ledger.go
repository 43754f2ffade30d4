package fleet

import (
	"fmt"
	"sync"

	"remit/money"
)

// charge is what an action requests, or a sum of these.
type charge struct {
	count int64
	value money.MicroUSD
}

func (c charge) plus(d charge) charge  { return charge{c.count + d.count, c.value + d.value} }
func (c charge) minus(d charge) charge { return charge{c.count - d.count, c.value - d.value} }
func (c charge) String() string        { return fmt.Sprintf("%d actions, %s USD", c.count, c.value) }

// flow is what a step of a transaction moves, or a sum of these. Returns are summed separately and not subtracted, because
// sums that only grow can be bounded without knowing the order in which the service executed the steps.
type flow struct {
	begun, committed, undone int64          // transactions; undone: rolled back after the commit
	numbers                  int64          // sum of the sequence numbers in answers
	held, freed              money.MicroUSD // by begins; by commits and rollbacks
	spent, returned          money.MicroUSD // by commits; by undoing commits
	over, overReturned       money.MicroUSD // beyond the limit
}

func (a flow) plus(b flow) flow {
	return flow{
		begun: a.begun + b.begun, committed: a.committed + b.committed, undone: a.undone + b.undone,
		numbers: a.numbers + b.numbers,
		held:    a.held + b.held, freed: a.freed + b.freed,
		spent: a.spent + b.spent, returned: a.returned + b.returned,
		over: a.over + b.over, overReturned: a.overReturned + b.overReturned,
	}
}

func (a flow) negated() flow {
	return flow{
		-a.begun, -a.committed, -a.undone, -a.numbers, -a.held, -a.freed, -a.spent, -a.returned, -a.over, -a.overReturned,
	}
}

// effect is what a request does to a session, or a sum of these.
type effect struct {
	charge
	flow
}

func (e effect) plus(d effect) effect { return effect{e.charge.plus(d.charge), e.flow.plus(d.flow)} }
func (e effect) minus(d effect) effect {
	return effect{e.charge.minus(d.charge), e.flow.plus(d.negated())}
}

// limits are the limits that a session was created with.
type limits struct {
	actions int64
	value   money.MicroUSD
}

// state is what a session has used and holds.
type state struct {
	count      int64
	used, held money.MicroUSD
	over       money.MicroUSD
}

func (s state) String() string {
	return fmt.Sprintf("%d actions, %s USD used, %s held, %s over", s.count, s.used, s.held, s.over)
}

// window bounds the state of a session over a time: at its start everything in before was stored, and at its end at most
// what is in possible.
type window struct{ before, possible effect }

func (w window) least() state {
	return state{
		count: w.before.count,
		used:  w.before.value + w.before.spent - w.possible.returned,
		held:  max(w.before.held-w.possible.freed, 0),
		over:  max(w.before.over-w.possible.overReturned, 0),
	}
}

func (w window) most() state {
	return state{
		count: w.possible.count,
		used:  w.possible.value + w.possible.spent - w.before.returned,
		held:  w.possible.held - w.before.freed,
		over:  w.possible.over - w.before.overReturned,
	}
}

// tally is a number of requests and the sum of what they requested.
type tally struct {
	requests int64
	effect
}

func (t *tally) add(e effect)      { *t = t.plus(tally{1, e}) }
func (t tally) plus(u tally) tally { return tally{t.requests + u.requests, t.effect.plus(u.effect)} }

// entries are the client's sums for one session.
type entries struct {
	acknowledged tally
	unknown      tally // no answer, a timeout or 5xx: executed or not
	byActions    tally // refused for max_actions
	byValue      tally // refused for max_value_usd
	inFlight     effect
}

func (e entries) plus(d entries) entries {
	return entries{
		acknowledged: e.acknowledged.plus(d.acknowledged),
		unknown:      e.unknown.plus(d.unknown),
		byActions:    e.byActions.plus(d.byActions),
		byValue:      e.byValue.plus(d.byValue),
		inFlight:     e.inFlight.plus(d.inFlight),
	}
}

// window bounds the session when nothing is in flight.
func (e entries) window() window {
	return window{e.acknowledged.effect, e.acknowledged.effect.plus(e.unknown.effect)}
}

// ledger is the client's account of one session. It is safe for concurrent use.
type ledger struct {
	mu sync.Mutex
	entries
}

// send adds a request before it is sent, with the most that it may do. It returns what every later answer must include.
func (l *ledger) send(requested effect) (before effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = l.inFlight.plus(requested)
	return l.acknowledged.effect
}

// finish adds the outcome of a request, and what it did if it was acknowledged.
func (l *ledger) finish(requested, did effect, r reply) {
	column := l.columnFor(r)
	if r.outcome() != acknowledged {
		did = requested
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = l.inFlight.minus(requested)
	if column != nil {
		column.add(did)
	}
}

// possible returns the most that an answer which has just arrived can include.
func (l *ledger) possible() effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged.effect.plus(l.unknown.effect).plus(l.inFlight)
}

// columnFor returns the tally for a reply; nil for a refusal that names no limit, because it charged nothing.
func (l *ledger) columnFor(r reply) *tally {
	switch r.outcome() {
	case acknowledged:
		return &l.acknowledged
	case unknown:
		return &l.unknown
	}
	switch readProblem(r).Limit {
	case limitActions:
		return &l.byActions
	case limitValue:
		return &l.byValue
	}
	return nil
}

// sums returns the entries so far.
func (l *ledger) sums() entries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries
}
