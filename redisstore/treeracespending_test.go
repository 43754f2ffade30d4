package redisstore

import (
	"time"

	"remit/money"
)

func (p *racer) charge(s *Store, n *racedNode) {
	c, caller := p.draw(n), p.caller(n)
	a := p.attempt("charge", n, false)
	p.mayGain(n, c)
	_, err := s.Charge(p.t.Context(), caller, n.session, Charge{Count: c.actions, Value: c.value})
	p.charged(a, c, err)
}

func (p *racer) charged(a *attempt, c cost, err error) {
	p.outcome(a, err, func() {
		p.gained(a.on, c)
		a.on.own = a.on.own.plus(c)
	}, func() { a.on.hasNot(c) }, func() { a.on.mayHave(c) })
}

func (p *racer) chargeBatch() {
	var attempts []*attempt
	var costs []cost
	var charges []BatchCharge
	for range 3 {
		n := p.pick(func(*racedNode) bool { return true })
		c := p.draw(n)
		attempts, costs = append(attempts, p.attempt("batch", n, false)), append(costs, c)
		charges = append(charges, BatchCharge{n.session, Charge{Count: c.actions, Value: c.value}})
		p.mayGain(n, c)
	}
	outcomes, err := p.either().ChargeBatch(p.t.Context(), p.byKey(), charges, nil)
	for i, a := range attempts {
		if err == nil {
			p.charged(a, costs[i], outcomes[i].Err)
		} else {
			p.charged(a, costs[i], err)
		}
	}
}

// transact begins a transaction, and mostly commits it or rolls it back, or one that others have left.
func (p *racer) transact(n *racedNode) {
	held, lifetime := cost{1, p.draw(n).value}, racedLifetime
	if n.mayExpire { // a transaction outlives its session
		lifetime = time.Second
	}
	a := p.attempt("begin", n, false)
	p.mayGain(n, held)
	begun, err := p.either().Begin(p.t.Context(), n.agent.token, NewTransaction{Session: n.session, ActionType: "call", PreState: "{}", Value: held.value,
		Lifetime: lifetime})
	p.outcome(a, err, func() {
		certain := held
		if n.mayBeOver { // its end may have rolled it back already
			certain.value = 0
		}
		p.gained(n, certain)
		n.own = n.own.plus(cost{1, 0})
		n.pending = append(n.pending, racedHold{begun.ID, held.value, !n.mayBeOver})
	}, func() { n.hasNot(held) }, func() { n.mayHave(cost{1, 0}) })
	switch p.random.IntN(4) {
	case 0:
	case 1:
		p.rollback(n)
	default:
		p.commit(n)
	}
}

// take takes one of what a session has in a list, if it has any.
func take[T any](p *racer, list *[]T) (taken T, any bool) {
	if len(*list) == 0 {
		return taken, false
	}
	i := p.random.IntN(len(*list))
	taken = (*list)[i]
	*list = append((*list)[:i:i], (*list)[i+1:]...)
	return taken, true
}

func (p *racer) takeHold(n *racedNode) (racedHold, bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	hold, any := take(p, &n.pending)
	if hold.certain {
		n.loses(cost{0, hold.value})
	}
	return hold, any
}

func (p *racer) commit(n *racedNode) {
	hold, any := p.takeHold(n)
	if !any {
		return
	}
	value := money.MicroUSD(p.random.Int64N(2*int64(hold.value) + 1))
	a := p.attempt("commit", n, true)
	p.mayGain(n, cost{0, value})
	did, err := p.either().Commit(p.t.Context(), n.agent.token, hold.id, Commit{Value: &value})
	p.outcome(a, err, func() {
		if did.Value+did.Overage != value {
			p.t.Errorf("a commit for %d charged %d and left %d over", value, did.Value, did.Overage)
		}
		p.gained(n, cost{0, did.Value})
		n.hasNot(cost{0, hold.value + value - did.Value})
		n.own, n.overage = n.own.plus(cost{0, did.Value}), n.overage+did.Overage
		n.committed = append(n.committed, racedCommit{hold.id, did.Value, did.Overage})
	}, func() { n.hasNot(cost{0, hold.value + value}) }, func() {
		n.mayHave(cost{0, value})
		n.unsureOverage += value
	})
}

func (p *racer) rollback(n *racedNode) {
	hold, any := p.takeHold(n)
	if !any {
		return
	}
	a := p.attempt("rollback", n, true)
	_, err := p.either().Rollback(p.t.Context(), p.byKey(), hold.id, Rollback{})
	gone := func() { n.hasNot(cost{0, hold.value}) }
	p.outcome(a, err, gone, gone, nothing)
}

// undo rolls back a commit. When the session is over it may have closed, and then nothing is given back.
func (p *racer) undo(n *racedNode) {
	p.lock.Lock()
	did, any := take(p, &n.committed)
	if any {
		n.loses(cost{0, did.value})
	}
	p.lock.Unlock()
	if !any {
		p.charge(p.either(), n)
		return
	}
	_, err := p.either().Rollback(p.t.Context(), p.byKey(), did.id, Rollback{})
	p.lock.Lock()
	defer p.lock.Unlock()
	n.own.value, n.overage = n.own.value-did.value, n.overage-did.overage
	switch {
	case err != nil && !isUnanswered(err):
		p.t.Errorf("a rollback of a commit: %v", err)
	case err != nil, n.mayBeOver:
		n.unsure.value, n.unsureOverage = n.unsure.value+did.value, n.unsureOverage+did.overage
	default:
		n.hasNot(cost{0, did.value})
		p.done["undo"]++
	}
}
