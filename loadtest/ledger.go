package main

import (
	"fmt"
	"sync"
)

// charge is what an action asks for, or a sum of these.
type charge struct {
	count int64
	value micros
}

func (c charge) plus(d charge) charge  { return charge{c.count + d.count, c.value + d.value} }
func (c charge) minus(d charge) charge { return charge{c.count - d.count, c.value - d.value} }
func (c charge) String() string        { return fmt.Sprintf("%d actions, %s USD", c.count, c.value) }

// flow is what a step of a transaction moves, or a sum of these. What is given back is not taken off what went out but
// summed beside it: sums that only grow can be bounded without knowing in which order the service did things.
type flow struct {
	begun, committed, undone int64  // transactions; undone: committed, and rolled back after that
	numbers                  int64  // sum of the sequence numbers that were told
	held, freed              micros // by begins; by what settled them
	spent, returned          micros // by commits; by undoing them
	over, overReturned       micros // beyond the limit
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

// limits are those a session was created with.
type limits struct {
	actions int64
	value   micros
}

// state is what of a session is used and held.
type state struct {
	count      int64
	used, held micros
	over       micros
}

func (s state) String() string {
	return fmt.Sprintf("%d actions, %s USD used, %s held, %s over", s.count, s.used, s.held, s.over)
}

// window bounds the states of a session over some time: all of before was in the books when it began, and nothing but
// what is possible was when it ended.
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

// tally is a number of requests and what they requested together.
type tally struct {
	requests int64
	effect
}

func (t *tally) add(e effect)      { *t = t.plus(tally{1, e}) }
func (t tally) plus(u tally) tally { return tally{t.requests + u.requests, t.effect.plus(u.effect)} }

// entries are the sums a client keeps of one session.
type entries struct {
	acknowledged tally
	unknown      tally // answered by nothing, a timeout or 5xx: charged or not
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

// window bounds the session when nothing is under way.
func (e entries) window() window {
	return window{e.acknowledged.effect, e.acknowledged.effect.plus(e.unknown.effect)}
}

// ledger is the client's own account of one session.
type ledger struct {
	mu sync.Mutex
	entries
}

// send enters a request that is about to be sent, by the most that it may do. It returns what every later answer must
// include.
func (l *ledger) send(requested effect) (before effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = l.inFlight.plus(requested)
	return l.acknowledged.effect
}

// finish enters how a request came out, and what it did if it was acknowledged. It returns the most that the answer can
// have counted.
func (l *ledger) finish(requested, did effect, r reply) (possible effect) {
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
	return l.acknowledged.effect.plus(l.unknown.effect).plus(l.inFlight)
}

// possible is the most that an answer which has just arrived can have counted.
func (l *ledger) possible() effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged.effect.plus(l.unknown.effect).plus(l.inFlight)
}

// columnFor is where a reply is entered; nil for a refusal that names no limit, which charged nothing.
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

// sums are the entries so far.
func (l *ledger) sums() entries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries
}
