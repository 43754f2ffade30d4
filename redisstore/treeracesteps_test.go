package redisstore

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

const (
	racedLevels  = 4
	leaseOfRace  = 10 * time.Second // at most
	shortestLife = 200 * time.Millisecond
)

// racer is one of those who change a tree.
type racer struct {
	*racedTree
	random *rand.Rand
}

// act does one step on a session of the tree.
func (p *racer) act() {
	n := p.pick(func(*racedNode) bool { return true })
	switch dice := p.random.IntN(100); {
	case dice < 28:
		p.charge(p.either(), n)
	case dice < 32:
		p.chargeBatch()
	case dice < 44:
		p.transact(n)
	case dice < 50:
		p.undo(n)
	case dice < 57:
		p.lease(n)
	case dice < 64:
		p.settle(p.pick(func(n *racedNode) bool { return len(n.leases) > 0 }))
	case dice < 80:
		p.create(p.pick(func(n *racedNode) bool { return n.depth < racedLevels }))
	case dice < 90:
		p.topUp(n)
	case dice < 93:
		p.end(p.pick(func(n *racedNode) bool { return n.depth > 1 && (n.depth > 2 || p.random.IntN(4) == 0) }))
	case dice < 98:
		p.suspend(p.pick(func(n *racedNode) bool { return n.depth > 1 || p.random.IntN(8) == 0 }))
	default:
		p.suspendAgent(p.agents[p.random.IntN(len(p.agents))])
	}
}

func (p *racer) either() *Store { return p.instances[p.random.IntN(2)] }

func (p *racer) byKey() Caller { return Caller{Key: &p.key} }

// caller is the session's agent or the API key.
func (p *racer) caller(n *racedNode) Caller {
	if p.random.IntN(2) == 0 {
		return Caller{Token: &n.agent.token}
	}
	return p.byKey()
}

// pick draws a session, mostly one that is not over, that the caller likes; the root if it likes none of many.
func (p *racer) pick(likes func(*racedNode) bool) *racedNode {
	p.lock.Lock()
	defer p.lock.Unlock()
	for range 100 {
		n := p.nodes[p.random.IntN(len(p.nodes))]
		if likes(n) && (!n.mayBeOver || p.random.IntN(8) == 0) {
			return n
		}
	}
	return p.nodes[0]
}

// draw draws up to a quarter of the session's limits, or now and then all of them.
func (p *racer) draw(n *racedNode) cost {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.random.IntN(10) == 0 {
		return n.limits
	}
	return cost{1 + p.random.Int64N(n.limits.actions/4+1), money.MicroUSD(p.random.Int64N(int64(n.limits.value)/4 + 1))}
}

func (p *racer) create(parent *racedNode) {
	p.lock.Lock()
	room := len(p.nodes)+p.coming < p.most && parent.depth < racedLevels
	if room {
		p.coming++
	}
	p.lock.Unlock()
	if !room {
		return
	}
	lifetime := racedLifetime
	if p.random.IntN(20) == 0 {
		lifetime = shortestLife * time.Duration(1+p.random.IntN(10))
	}
	p.createPart(parent, p.draw(parent), lifetime)
	p.lock.Lock()
	defer p.lock.Unlock()
	p.coming--
}

// createPart creates a child for an agent drawn for it.
func (p *racer) createPart(parent *racedNode, c cost, lifetime time.Duration) {
	agent := p.agents[p.random.IntN(len(p.agents))]
	a := p.attempt("create", parent, false, &agent.suspension)
	child, err := p.either().CreateChildSession(p.t.Context(), p.caller(parent), NewSession{Agent: agent.id, Parent: parent.session,
		MaxActions: c.actions, MaxValue: c.value, Lifetime: lifetime, MaxLease: leaseOfRace})
	p.outcome(a, err, func() {
		p.nodes = append(p.nodes, &racedNode{place: place{child.ID, agent.id}, agent: agent, above: parent, depth: parent.depth + 1,
			suspension: newRacedGate(), limits: c, mayBeOver: parent.mayBeOver || lifetime < racedLifetime,
			mayExpire: parent.mayExpire || lifetime < racedLifetime})
	}, nothing, nothing)
}

func (p *racer) topUp(n *racedNode) {
	more := p.draw(n).plus(cost{1, 1})
	a := p.attempt("top-up", n, true)
	p.lock.Lock()
	n.limits = n.limits.plus(more)
	p.lock.Unlock()
	changed, err := p.either().ChangeLimits(p.t.Context(), p.key, n.session, NewLimits{AddActions: &more.actions, AddValue: &more.value})
	p.outcome(a, err, func() {
		if is := (cost{changed.MaxActions, changed.MaxValue}); !is.within(cost{}, n.limits) {
			p.t.Errorf("a top-up raised the limits to %v, which were to be at most %v", is, n.limits)
		}
	}, func() { n.limits = n.limits.minus(more) }, nothing)
}

func (p *racer) end(n *racedNode) {
	if n.above == nil {
		return
	}
	p.willEnd(n)
	a := p.attempt("end", n, true)
	a.isOver = false // it may be ended again
	_, err := p.either().EndSession(p.t.Context(), p.caller(n), n.session)
	p.outcome(a, err, func() { n.isOver = true }, nothing, nothing)
}

// suspend suspends a session by one instance and charges one below by the other, which must refuse it; and resumes it likewise.
func (p *racer) suspend(n *racedNode) {
	p.turnTwice(&n.suspension, func(s *Store, side int) error {
		a := p.attempt([]string{shut: "suspend", open: "resume"}[side], n, true)
		do := []func() (Session, error){
			shut: func() (Session, error) { return s.SuspendSession(p.t.Context(), p.key, n.session, "drill") },
			open: func() (Session, error) { return s.ResumeSession(p.t.Context(), p.key, n.session, "") },
		}[side]
		_, err := do()
		p.outcome(a, err, nothing, nothing, nothing)
		return err
	}, func(m *racedNode) bool { return m.isBelow(n) })
}

func (p *racer) suspendAgent(agent *racedAgent) {
	p.turnTwice(&agent.suspension, func(s *Store, side int) error {
		change := []func(id uuid.UUID) (Agent, error){
			shut: func(id uuid.UUID) (Agent, error) { return s.SuspendAgent(p.t.Context(), p.key, id, "drill") },
			open: func(id uuid.UUID) (Agent, error) { return s.ResumeAgent(p.t.Context(), p.key, id, "") },
		}[side]
		_, err := change(agent.id)
		if err != nil && !isUnanswered(err) {
			p.t.Errorf("to suspend or resume an agent: %v", err)
		}
		return err
	}, func(m *racedNode) bool { return m.agent == agent })
}

// turnTwice turns a gate by one instance and uses what is behind it by the other, and then the other way round.
func (p *racer) turnTwice(g *racedGate, turn func(s *Store, side int) error, behind func(*racedNode) bool) {
	first := p.random.IntN(2)
	for i, side := range []int{shut, open} {
		here, there := p.instances[(first+i)%2], p.instances[(first+i+1)%2]
		done := p.turn(g, side)
		done(turn(here, side))
		p.charge(there, p.pick(behind))
		p.charge(there, p.pick(behind))
	}
}
