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

// limits are those a session was created with.
type limits struct {
	actions int64
	value   micros
}

// tally is a number of requests and what they asked for together.
type tally struct {
	requests int64
	charge
}

func (t *tally) add(c charge)      { *t = t.plus(tally{1, c}) }
func (t tally) plus(u tally) tally { return tally{t.requests + u.requests, t.charge.plus(u.charge)} }

// entries are the sums a client keeps of one session.
type entries struct {
	acknowledged tally
	unknown      tally // answered by nothing, a timeout or 5xx: charged or not
	byActions    tally // refused for max_actions
	byValue      tally // refused for max_value_usd
	inFlight     charge
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

// ledger is the client's own account of one session.
type ledger struct {
	mu sync.Mutex
	entries
}

// send enters an action that is about to be sent. The floor it returns is what every later answer must include.
func (l *ledger) send(asked charge) (floor charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = l.inFlight.plus(asked)
	return l.acknowledged.charge
}

// settle enters how an action came out. The ceiling it returns is the most that its answer can have counted.
func (l *ledger) settle(asked charge, r reply) (ceiling charge) {
	column := l.columnFor(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = l.inFlight.minus(asked)
	if column != nil {
		column.add(asked)
	}
	return l.acknowledged.charge.plus(l.unknown.charge).plus(l.inFlight)
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
