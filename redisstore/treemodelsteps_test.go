package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"remit/money"
	"remit/redisstore/internal/kernel"
)

// expected returns nil for the refusals that the model meets at any time.
func expected(err error) error {
	var limit *LimitError
	var inactive *NotActiveError
	var budget *BudgetError
	var below *BelowUsageError
	var ofAgent *AgentLimitError
	for _, refusal := range []any{&limit, &inactive, &budget, &below, &ofAgent} {
		if errors.As(err, refusal) {
			return nil
		}
	}
	for _, refusal := range []error{ErrUnknownSession, kernel.ErrGivenUp, kernel.ErrStale, kernel.ErrBeyondParent, ErrParentEnforces, ErrAgentRevoked, ErrInvalidToken} {
		if errors.Is(err, refusal) {
			return nil
		}
	}
	return err
}

// expectedIn is expected for what a suspension of the node may refuse, and for what it must refuse.
func (m *modelTree) expectedIn(n *modelNode, err error) error {
	suspended := n.any(func(n *modelNode) bool { return n.suspended })
	switch {
	case err == nil && suspended:
		return errors.New("a session does something after its suspension was acknowledged")
	case err == nil && n.doomed:
		return errors.New("a session does something after its end was acknowledged")
	case kernel.IsSuspended(err) && suspended:
		return nil
	}
	return expected(err)
}

func (m *modelTree) charge(t *testing.T, n *modelNode) error {
	c := Charge{Count: 1 + m.random.Int64N(3), Value: money.MicroUSD(m.random.Int64N(20))}
	_, err := m.s.Charge(t.Context(), m.w.byKey(), n.session, c)
	if err == nil {
		n.spend(c.Count, c.Value)
		m.count(n.agent, c.Value)
	}
	return m.expectedIn(n, err)
}

func (n *modelNode) spend(actions int64, value money.MicroUSD) {
	n.own = Delegated{n.own.Actions + actions, n.own.Value + value}
}

func (m *modelTree) create(t *testing.T, above *modelNode) error {
	n := NewSession{
		Agent: m.agents[m.random.IntN(len(m.agents))].ID, Parent: above.session, MaxActions: 1 + m.random.Int64N(40),
		MaxValue: money.MicroUSD(m.random.Int64N(120)), Lifetime: time.Duration(20+m.random.IntN(300)) * time.Second,
		MaxLease: time.Minute, Observes: above.observes && m.random.IntN(2) == 0,
		FitActions: m.random.IntN(3) == 0, FitValue: m.random.IntN(3) == 0,
	}
	child := &modelNode{place: place{NewID(n.Agent), n.Agent}, above: above, observes: n.Observes}
	act := ownActor(m.w.key.Organization, above.agent)
	r, err := m.s.setAside(t.Context(), setAsidePart, act, child.session, n)
	if refused := m.expectedIn(above, err); err != nil || refused != nil {
		return refused
	}
	above.below, child.doomed = append(above.below, child), above.doomed
	m.nodes = append(m.nodes, child)
	part, err := readSetAside(r, nil)
	if err != nil {
		return err
	}
	create := func(t *testing.T) error {
		_, err := m.s.createOfPart(t.Context(), act, n, part)
		return expected(err)
	}
	switch m.random.IntN(8) {
	case 0: // the service crashes before the session is created
		return nil
	case 1: // or it goes on much later
		m.later = append(m.later, create)
		return nil
	}
	return create(t)
}

func (m *modelTree) topUp(t *testing.T, n *modelNode) error {
	more := NewLimits{AddValue: new(money.MicroUSD(1 + m.random.Int64N(50))), AddActions: new(1 + m.random.Int64N(20))}
	if m.random.IntN(3) > 0 {
		_, err := m.s.ChangeLimits(t.Context(), m.w.key, n.session, more)
		return expected(err)
	}
	act := ownActor(m.w.key.Organization, n.agent)
	at, err := m.s.readLimits(t.Context(), act.Flow, n.session)
	if err != nil {
		return expected(err)
	}
	at.budgeted = true
	granted, err := m.s.grantAbove(t.Context(), act, at, more) // and then the service crashes, or goes on much later
	if err == nil && m.random.IntN(2) == 0 {
		m.later = append(m.later, func(t *testing.T) error {
			_, err := m.s.changeWithin(t.Context(), act, n.session, more, granted)
			return expected(err)
		})
	}
	return expected(err)
}

// goOn lets what is on its way arrive.
func (m *modelTree) goOn(t *testing.T) error {
	if len(m.later) == 0 {
		return nil
	}
	i := m.random.IntN(len(m.later))
	next := m.later[i]
	m.later = append(m.later[:i], m.later[i+1:]...)
	return next(t)
}

func (m *modelTree) end(t *testing.T, n *modelNode) error {
	if n == m.nodes[0] && m.random.IntN(3) > 0 {
		return nil // or there would be few other steps
	}
	if m.random.IntN(2) == 0 {
		err := m.s.endOne(t.Context(), m.w.key.Organization, n.place) // and then the service crashes
		return errors.Join(expected(err), m.noteEnds(t, n))
	}
	return m.endWhole(t, n)
}

func (m *modelTree) endWhole(t *testing.T, n *modelNode) error {
	_, err := m.s.EndSession(t.Context(), m.w.byKey(), n.session)
	if err == nil {
		n.doom()
	}
	return errors.Join(expected(err), m.noteEnds(t, n))
}

func (n *modelNode) doom() {
	n.doomed = true
	for _, child := range n.below {
		child.doom()
	}
}

// settleInPart settles a session up to some step.
func (m *modelTree) settleInPart(t *testing.T, n *modelNode) error {
	o, above := m.w.key.Organization, place{}
	if n.above != nil {
		above = n.above.place
	}
	if m.random.IntN(3) == 0 {
		m.s.settleBelow(t.Context(), o, n.place)
		return nil
	}
	final, err := m.s.closeUsage(t.Context(), o, n.place, refusesMissing)
	if err != nil || final.mayChange() || m.random.IntN(3) == 0 {
		return err
	}
	take := func(t *testing.T) error { return m.s.takeUsage(t.Context(), o, above, n.place, final) }
	rest := func(t *testing.T) error { return m.s.takeBack(t.Context(), o, above, n.place, &final) }
	switch m.random.IntN(4) {
	case 0:
		return take(t)
	case 1:
		m.later = append(m.later, take, rest)
		return nil
	case 2: // it arrives twice
		m.later = append(m.later, take)
	}
	return errors.Join(take(t), rest(t))
}

func (m *modelTree) suspend(t *testing.T, n *modelNode) error {
	if n.suspended || m.random.IntN(3) == 0 {
		_, err := m.s.ResumeSession(t.Context(), m.w.key, n.session, "")
		n.suspended = n.suspended && err != nil
		return expected(err)
	}
	_, err := m.s.SuspendSession(t.Context(), m.w.key, n.session, "")
	n.suspended = err == nil
	return expected(err)
}

// changeEnforcement lets a session observe if the one above does, or makes it and all below it enforce.
func (m *modelTree) changeEnforcement(t *testing.T, n *modelNode) error {
	if n.above == nil && !n.observes {
		return nil // it would observe only actions that the model does not count
	}
	observes := m.random.IntN(2) == 0
	_, err := m.s.ChangeLimits(t.Context(), m.w.key, n.session, NewLimits{Observes: &observes})
	switch {
	case err == nil && observes && n.above != nil && !n.above.observes && !n.observes:
		return fmt.Errorf("a session begins to observe below one that enforces")
	case err == nil && observes:
		n.observes = true
	case err == nil:
		n.enforce()
	}
	return expected(err)
}

func (n *modelNode) enforce() {
	n.observes = false
	for _, child := range n.below {
		child.enforce()
	}
}

func (m *modelTree) changeLifetime(t *testing.T, n *modelNode) error {
	lifetime := time.Duration(20+m.random.IntN(300)) * time.Second
	_, err := m.s.ChangeLimits(t.Context(), m.w.key, n.session, NewLimits{Lifetime: &lifetime})
	return expected(err)
}

// changeBudget sets the budget to somewhat more than is reserved and used, or to less, which is refused.
func (m *modelTree) changeBudget(t *testing.T) error {
	is, err := m.s.Budget(t.Context(), m.w.key)
	if err != nil {
		return err
	}
	limit := max(is.Reserved+is.Used+money.MicroUSD(m.random.Int64N(400)-100), 0)
	_, err = m.s.SetBudget(t.Context(), m.w.key, limit, BudgetDay)
	var below *BudgetBelowUsageError
	if errors.As(err, &below) != (limit < is.Reserved+is.Used) {
		return fmt.Errorf("a budget of %d over %+v: %v", limit, is, err)
	}
	if below != nil {
		err = nil
	}
	return err
}

// revoke revokes an agent, and takes another in its place.
func (m *modelTree) revoke(t *testing.T) error {
	i := m.random.IntN(len(m.agents))
	if _, err := m.s.RevokeAgent(t.Context(), m.w.key, m.agents[i].ID); err != nil {
		return err
	}
	for _, n := range m.nodes {
		if n.agent == m.agents[i].ID {
			n.doomed = true
		}
	}
	delete(m.days.limits, m.agents[i].ID)
	m.agents[i] = newAgents(t, m.s, m.w.key, 1)[0]
	return nil
}
