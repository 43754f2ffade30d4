package redisstore

import (
	"errors"
	"time"

	"remit/money"
)

// leaseOf is what a lease takes from its session, until it is settled.
func leaseOf(l Lease) cost { return cost{l.MaxActions, l.MaxValue} }

func (p *racer) newLease(n *racedNode) NewLease {
	c := p.draw(n)
	return NewLease{MaxActions: c.actions, MaxValue: c.value + 1, Lifetime: time.Duration(1+p.random.IntN(2000)) * time.Millisecond,
		Partial: p.random.IntN(2) == 0}
}

func (p *racer) lease(n *racedNode) {
	wanted := p.newLease(n)
	a, c := p.attempt("lease", n, false), cost{wanted.MaxActions, wanted.MaxValue}
	p.mayGain(n, c)
	granted, err := p.either().GrantLease(p.t.Context(), p.caller(n), n.session, wanted)
	p.leased(a, c, granted, err)
}

// leased is the outcome of a lease or a renewal that asked for so much.
func (p *racer) leased(a *attempt, wanted cost, granted Lease, err error) {
	n := a.on
	p.outcome(a, err, func() {
		p.gained(n, leaseOf(granted))
		n.hasNot(wanted.minus(leaseOf(granted)))
		n.own = n.own.plus(leaseOf(granted))
		n.leases = append(n.leases, granted)
	}, func() { n.hasNot(wanted) }, func() { n.mayHave(wanted) })
}

// settle settles a lease for less than it has, or now and then for more, and may renew it.
func (p *racer) settle(n *racedNode) {
	p.lock.Lock()
	l, any := take(p, &n.leases)
	if any {
		n.loses(leaseOf(l))
		n.own = n.own.minus(leaseOf(l))
	}
	p.lock.Unlock()
	if !any {
		return
	}
	used := cost{p.random.Int64N(l.MaxActions + 1), money.MicroUSD(p.random.Int64N(int64(l.MaxValue) + 1))}
	if p.random.IntN(5) == 0 {
		used.value += l.MaxValue / 2
	}
	settlement := NewSettlement{ActionCount: used.actions, ValueUsed: used.value}
	var renewed cost
	renewal := p.attempt("renew", n, false)
	if p.random.IntN(3) == 0 {
		next := p.newLease(n)
		settlement.Renew, renewed = &next, cost{next.MaxActions, next.MaxValue}
	}
	p.mayGain(n, used.plus(renewed))
	settled, err := p.either().SettleLease(p.t.Context(), p.byKey(), l.ID, settlement)
	if err != nil {
		p.outcome(p.attempt("settle", n, true), err, nothing, nothing, func() {
			n.mayHave(leaseOf(l).plus(used).plus(renewed))
			n.unsureOverage += used.value
		})
		return
	}
	p.settled(n, l, used, *settled.Settlement)
	if settlement.Renew != nil {
		p.renewed(renewal, renewed, *settled.Settlement)
	}
}

// settled notes what was booked of a lease. One that ran out in a session that is over may have stayed spent in full.
func (p *racer) settled(n *racedNode, l Lease, used cost, did Settlement) {
	p.lock.Lock()
	defer p.lock.Unlock()
	booked, whole := cost{did.ActionCount - did.OverageActions, did.ValueUsed - did.Overage}, leaseOf(l)
	n.own = n.own.plus(booked)
	p.gained(n, booked)
	if did.Late && n.mayBeOver && booked.within(cost{}, whole) {
		n.unsure, n.unsureOverage = n.unsure.plus(whole.minus(booked)), n.unsureOverage+did.Overage
		n.hasNot(used)
		return
	}
	n.overage += did.Overage
	n.hasNot(whole.plus(used).minus(booked))
	p.done["settle"]++
}

// renewed judges a renewal as the grant of a lease.
func (p *racer) renewed(a *attempt, wanted cost, did Settlement) {
	var next Lease
	var err error
	switch did.Refusal {
	case "":
		next = *did.Renewed
	case "session_suspended":
		err = &SessionSuspendedError{}
	case "agent_suspended":
		err = &AgentSuspendedError{}
	case "session_not_active":
		err = &NotActiveError{}
	case "session_limit_reached":
		err = &LimitError{Limit: did.Limit}
	default:
		err = errors.New(did.Refusal)
	}
	p.leased(a, wanted, next, err)
}
