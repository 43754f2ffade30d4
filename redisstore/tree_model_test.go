package redisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/internal/suite"
	"remit/money"
)

// modelTree is a tree of sessions in a budget with what was truly charged. Operations break off after any step of the protocol, as
// when the service crashes, and may be repeated.
type modelTree struct {
	s      *Store
	mini   *miniredis.Miniredis
	now    time.Time
	w      tenant
	agents []Agent
	random *rand.Rand
	nodes  []*modelNode // the root first
	budget money.MicroUSD
	spent  money.MicroUSD // in the budget before this tree
}

type modelNode struct {
	place
	above    *modelNode
	below    []*modelNode
	own      Delegated // charged to it
	maxValue money.MicroUSD
	doomed   bool // its end, or that of one above it, was acknowledged
	unknown  bool // it may not exist
}

func (n *modelNode) total() Delegated {
	sum := n.own
	for _, child := range n.below {
		of := child.total()
		sum.Actions, sum.Value = sum.Actions+of.Actions, sum.Value+of.Value
	}
	return sum
}

const mostInModel = 24

// step does one thing, whole or up to some step.
func (m *modelTree) step(t *testing.T) error {
	n := m.nodes[m.random.IntN(len(m.nodes))]
	switch dice := m.random.IntN(100); {
	case dice < 50:
		return m.charge(t, n)
	case dice < 70 && len(m.nodes) < mostInModel:
		return m.create(t, n)
	case dice < 80:
		return m.topUp(t, n)
	case dice < 84:
		return m.end(t, n)
	case dice < 96:
		return m.settleInPart(t, n)
	default:
		m.now = m.now.Add(time.Duration(m.random.IntN(20)) * time.Second)
		m.mini.SetTime(m.now)
		return nil
	}
}

func (m *modelTree) charge(t *testing.T, n *modelNode) error {
	c := Charge{Count: 1 + m.random.Int64N(3), Value: money.MicroUSD(m.random.Int64N(20))}
	_, err := m.s.Charge(t.Context(), m.w.byKey(), n.session, c)
	if err == nil {
		if n.doomed {
			return fmt.Errorf("a session is charged after its end was acknowledged")
		}
		n.own.Actions += c.Count
		n.own.Value += c.Value
	}
	return expected(err)
}

// expected returns nil for the refusals that the model meets at any time.
func expected(err error) error {
	var limit *LimitError
	var inactive *NotActiveError
	var budget *BudgetError
	var below *BelowUsageError
	if errors.As(err, &limit) || errors.As(err, &inactive) || errors.As(err, &budget) || errors.As(err, &below) ||
		errors.Is(err, ErrUnknownSession) || err == errGivenUp {
		return nil
	}
	return err
}

func (m *modelTree) create(t *testing.T, above *modelNode) error {
	n := NewSession{
		Agent: m.agents[m.random.IntN(len(m.agents))].ID, Parent: above.session, MaxActions: 1 + m.random.Int64N(40),
		MaxValue: money.MicroUSD(m.random.Int64N(120)), Lifetime: time.Duration(20+m.random.IntN(300)) * time.Second, WithinParent: true,
	}
	child := &modelNode{place: place{NewID(n.Agent), n.Agent}, above: above, maxValue: n.MaxValue}
	act := ownActor(m.w.key.Organization, above.agent)
	r, err := m.s.setAside(t.Context(), setAsidePart, act, child.session, n)
	if err != nil {
		return expected(err)
	}
	above.below, child.doomed = append(above.below, child), above.doomed
	m.nodes = append(m.nodes, child)
	if child.unknown = m.random.IntN(4) == 0; child.unknown {
		return nil // the service crashes before the session is created
	}
	part, err := readSetAside(r, nil)
	if err != nil {
		return err
	}
	_, err = m.s.createOfPart(t.Context(), act, n, part)
	return expected(err)
}

func (m *modelTree) topUp(t *testing.T, n *modelNode) error {
	more := NewLimits{AddValue: new(money.MicroUSD(1 + m.random.Int64N(50))), AddActions: new(1 + m.random.Int64N(20))}
	if m.random.IntN(3) > 0 {
		changed, err := m.s.ChangeLimits(t.Context(), m.w.key, n.session, more)
		if err == nil {
			n.maxValue = changed.MaxValue
		}
		return expected(err)
	}
	act := ownActor(m.w.key.Organization, n.agent)
	at, err := m.s.readLimits(t.Context(), act.flow, n.session)
	if err == nil {
		at.budgeted = true
		_, err = m.s.grantAbove(t.Context(), act, at, more) // and then the service crashes
	}
	return expected(err)
}

func (m *modelTree) end(t *testing.T, n *modelNode) error {
	if n == m.nodes[0] && m.random.IntN(3) > 0 {
		return nil // or there would be few other steps
	}
	if m.random.IntN(2) == 0 {
		return expected(m.s.endOne(t.Context(), m.w.key.Organization, n.place)) // and then the service crashes
	}
	_, err := m.s.EndSession(t.Context(), m.w.byKey(), n.session)
	if err == nil {
		n.doom()
	}
	return expected(err)
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
	if n.unknown { // it may still be on its way: what looks at it refuses it
		return nil
	}
	books, err := m.s.closeBooks(t.Context(), o, n.place)
	if err != nil || books.mayChange() || m.random.IntN(3) == 0 {
		return err
	}
	if err := m.s.takeUsage(t.Context(), o, above, n.place, books); err != nil || m.random.IntN(2) == 0 {
		return err
	}
	return m.s.takeBack(t.Context(), o, above, n.place, &books)
}

// check compares every session with what was truly charged in and below it.
func (m *modelTree) check(t *testing.T) error {
	for _, n := range m.nodes {
		is, err := m.s.Session(t.Context(), m.w.byKey(), n.session)
		if errors.Is(err, ErrUnknownSession) {
			continue
		}
		if err != nil {
			return err
		}
		total, counted := n.total(), is.ValueUsed+is.delegated().Value
		if total.Value > is.MaxValue || total.Actions > is.MaxActions {
			return fmt.Errorf("%+v was charged in and below a session with %d and %d", total, is.MaxActions, is.MaxValue)
		}
		if counted > is.MaxValue || is.RemainingValue() < 0 || is.RemainingActions() < 0 {
			return fmt.Errorf("a session counts more than its limit: %+v", is)
		}
		if counted < total.Value || is.ActionCount+is.delegated().Actions < total.Actions {
			return fmt.Errorf("a session counts %d and %d less than the %+v charged in and below it", is.ActionCount+is.delegated().Actions,
				counted, total)
		}
	}
	return nil
}

// checkEnd ends the tree, lets the service look at it as requests make it do, and checks that all is settled exactly.
func (m *modelTree) checkEnd(t *testing.T) error {
	o := m.w.key.Organization
	if _, err := m.s.EndSession(t.Context(), m.w.byKey(), m.nodes[0].session); expected(err) != nil {
		return err
	}
	for range 9 { // the depth of the tree, and the budget
		m.now = m.now.Add(firstLook + time.Second)
		m.mini.SetTime(m.now)
		for _, n := range m.nodes {
			m.s.settleBelow(t.Context(), o, n.place)
		}
		m.s.settleBelow(t.Context(), o, place{})
	}
	for _, n := range m.nodes {
		total := n.total()
		is, err := m.s.Session(t.Context(), m.w.byKey(), n.session)
		switch {
		case errors.Is(err, ErrUnknownSession) && total == (Delegated{}):
		case err != nil:
			return err
		case is.delegated() != Delegated{} || is.ValueUsed != total.Value || is.ActionCount != total.Actions:
			return fmt.Errorf("a settled session has %d and %d used and %+v delegated, and %+v was charged", is.ActionCount, is.ValueUsed,
				is.delegated(), total)
		default:
			if left := m.mini.TTL(m.s.keys.session(n.agent, n.session)); left > refusedFor+m.s.config.Retention {
				return fmt.Errorf("a settled session is stored for %s", left)
			}
		}
	}
	m.spent += m.nodes[0].total().Value
	budget, err := m.s.Budget(t.Context(), m.w.key)
	if err == nil && (budget.Reserved != 0 || budget.Used != m.spent) {
		err = fmt.Errorf("the budget has %d reserved and %d used, and %d were spent", budget.Reserved, budget.Used, m.spent)
	}
	return err
}

func (m *modelTree) plant(t *testing.T) {
	t.Helper()
	root := must(m.s.CreateSession(t.Context(), m.w.key, NewSession{Agent: m.agents[0].ID, MaxActions: 200, MaxValue: 500, Lifetime: 10 * time.Minute}))(t)
	m.nodes = []*modelNode{{place: place{root.ID, root.Agent}, maxValue: 500}}
}

func TestATreeStaysExactWhateverStepIsTheLast(t *testing.T) {
	t.Parallel()
	steps := 1_000
	if suite.Long {
		steps = 200_000
	}
	const processes, ofTree, checkEvery = 2, 100, 10
	for seed := range uint64(processes) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			mini := miniredis.RunT(t)
			now := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
			mini.SetTime(now)
			s := openStore(t, Config{}, "redis://"+mini.Addr(), nil)
			w := newTenant(t, s, NewSession{MaxActions: 1})
			must(s.SetBudget(t.Context(), w.key, money.Max, BudgetForever))(t)
			m := &modelTree{s: s, mini: mini, now: now, w: w, agents: newAgents(t, s, w.key, 5), random: rand.New(rand.NewPCG(seed, 8))}
			for range steps / processes / ofTree {
				m.plant(t)
				for step := range ofTree {
					err := m.step(t)
					if err == nil && step%checkEvery == 0 {
						err = m.check(t)
					}
					if err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
				}
				if err := m.checkEnd(t); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
