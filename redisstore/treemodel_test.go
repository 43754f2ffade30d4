package redisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/money"
	"remit/test/suite"
)

// modelTree is a tree of sessions in a budget with what was truly charged. Operations break off after any step of the protocol, as
// when the service crashes, may be repeated, and may go on much later. Some of the agents have a limit for a day.
type modelTree struct {
	s      *Store
	mini   *miniredis.Miniredis
	now    time.Time
	w      tenant
	agents []Agent
	random *rand.Rand
	nodes  []*modelNode // the root first
	days   modelDays

	counted  bool           // the budget has the usage of this tree's root
	used     money.MicroUSD // what the budget counts in this period, of trees before this one too
	silence  bool           // weeks of it: records that were settled before are gone
	observed bool           // a session of this tree has observed
	later    []func(*testing.T) error

	holds  []*modelHold
	leases []*modelLease
}

type modelNode struct {
	place
	above     *modelNode
	below     []*modelNode
	own       Delegated // charged to it, and leased
	doomed    bool      // its end, or that of one above it, was acknowledged
	suspended bool      // by itself
	observes  bool      // and so do all above it
	ended     bool

	// When many change the tree at once:
	limits Delegated // the most that it may have
	unsure bool      // it is not known whether something was charged
}

func (n *modelNode) total() Delegated {
	sum := n.own
	for _, child := range n.below {
		of := child.total()
		sum.Actions, sum.Value = sum.Actions+of.Actions, sum.Value+of.Value
	}
	return sum
}

// any says whether something holds for the node or one above it.
func (n *modelNode) any(holds func(*modelNode) bool) bool {
	return n != nil && (holds(n) || n.above.any(holds))
}

const mostInModel = 24

// step does one thing, whole or up to some step.
func (m *modelTree) step(t *testing.T) error {
	n, dice, create := m.nodes[m.random.IntN(len(m.nodes))], m.random.IntN(1000), m.create
	if len(m.nodes) >= mostInModel {
		create = m.topUp
	}
	anywhere := func(do func(*testing.T) error) func(*testing.T, *modelNode) error {
		return func(t *testing.T, _ *modelNode) error { return do(t) }
	}
	for _, kind := range []struct {
		times int // of 1000
		do    func(*testing.T, *modelNode) error
	}{
		{300, m.charge}, {150, create}, {60, m.topUp}, {30, m.end}, {100, m.settleInPart}, {80, m.hold}, {70, anywhere(m.finishHold)},
		{40, m.lease}, {40, anywhere(m.settleLease)}, {30, m.suspend}, {20, m.changeEnforcement}, {10, m.changeLifetime},
		{10, anywhere(m.changeBudget)}, {2, anywhere(m.revoke)}, {20, anywhere(m.goOn)},
	} {
		if dice -= kind.times; dice < 0 {
			return kind.do(t, n)
		}
	}
	m.pass(time.Duration(m.random.IntN(20)) * time.Second)
	return nil
}

// pass lets time pass for Redis: its clock, and what it stores for a time only.
func (m *modelTree) pass(d time.Duration) {
	before := m.now
	m.now = m.now.Add(d)
	m.mini.SetTime(m.now)
	m.mini.FastForward(d)
	m.holdsExpire()
	if !sameDay(before, m.now) {
		m.days.begin()
		m.used = 0
	}
}

func sameDay(a, b time.Time) bool {
	return a.Truncate(day).Equal(b.Truncate(day))
}

// check compares every session with what was truly charged in and below it.
func (m *modelTree) check(t *testing.T) error {
	read := map[*modelNode]Session{} // without those that are unknown
	for _, n := range m.nodes {
		is, err := m.s.Session(t.Context(), m.w.byKey(), n.session)
		if errors.Is(err, ErrUnknownSession) {
			continue
		}
		if err != nil {
			return err
		}
		read[n] = is
		total, value, actions := n.total(), is.ValueUsed+is.ValueHeld+is.delegated().Value, is.ActionCount+is.delegated().Actions
		switch {
		case value > is.MaxValue || actions > is.MaxActions && !(m.observed && n.above == nil):
			return fmt.Errorf("a session counts more than its limit: %+v", is)
		case value < total.Value || actions < total.Actions:
			return fmt.Errorf("a session counts %d and %d, less than the %+v charged in and below it", actions, value, total)
		case is.Status == Active && is.Observes && !n.observes:
			return errors.New("a session observes, and one above it was to enforce")
		case is.Status == Active && n.above != nil:
			above, known := read[n.above] // which was created, and read, before
			if !known || n.doomed || is.Expires.After(above.Expires) {
				return fmt.Errorf("a session lives until %s, its parent is %s until %s", is.Expires, above.Status, above.Expires)
			}
		}
	}
	return m.checkDays(t)
}

// watchBudget notes when the budget has the usage of this tree's root, and checks its bounds.
func (m *modelTree) watchBudget(t *testing.T) error {
	is, err := m.s.Budget(t.Context(), m.w.key)
	if err != nil {
		return err
	}
	if !m.counted && is.Reserved == 0 {
		m.counted, m.used = true, m.used+m.nodes[0].total().Value
	}
	switch total := m.nodes[0].total().Value; {
	case is.Used != m.used:
		err = fmt.Errorf("the budget has %d used in this period, want %d", is.Used, m.used)
	case !m.counted && is.Reserved < total:
		err = fmt.Errorf("the budget has %d reserved, and %d were charged", is.Reserved, total)
	case is.Reserved+is.Used > is.MaxValue || is.Remaining() < 0:
		err = fmt.Errorf("the budget is exceeded: %+v", is)
	}
	return err
}

// checkEnd ends the tree, lets the service look at it as requests make it do, and checks that all is settled exactly. What was on
// its way arrives after that, and changes nothing.
func (m *modelTree) checkEnd(t *testing.T) error {
	if err := errors.Join(m.endWhole(t, m.nodes[0]), m.watchBudget(t)); err != nil {
		return err
	}
	if m.silence = m.random.IntN(4) == 0; m.silence {
		m.pass(40 * day)
	}
	if err := errors.Join(m.settleAll(t), m.checkSettled(t)); err != nil {
		return err
	}
	for len(m.later) > 0 {
		if err := m.goOn(t); err != nil {
			return err
		}
	}
	return errors.Join(m.settleAll(t), m.checkSettled(t), m.checkDays(t))
}

// settleAll lets the service look at the tree each minute, or once when that is over if nothing is left to settle.
func (m *modelTree) settleAll(t *testing.T) error {
	o := m.w.key.Organization
	// 14 are more than the depth of the tree, and than any session lasts whose end was refused.
	for left, minutes := 14, 1; left > 0; left -= minutes {
		if !m.delegates() {
			minutes = left
		}
		m.pass(time.Duration(minutes) * time.Minute)
		for _, n := range m.nodes {
			m.s.settleBelow(t.Context(), o, n.place)
		}
		m.s.settleBelow(t.Context(), o, place{})
		if err := m.watchBudget(t); err != nil {
			return err
		}
	}
	return nil
}

// delegates says whether a session has parts, or the budget has a reservation.
func (m *modelTree) delegates() bool {
	o, keys, stored := m.w.key.Organization, m.s.keys, m.mini.Exists
	return stored(keys.Reservations(o)) || stored(keys.ReservationLooks(o)) || slices.ContainsFunc(m.nodes, func(n *modelNode) bool {
		return stored(keys.Parts(n.session, n.session)) || stored(keys.Looks(n.session, n.session))
	})
}

func (m *modelTree) checkSettled(t *testing.T) error {
	for _, n := range m.nodes {
		total := n.total()
		is, err := m.s.Session(t.Context(), m.w.byKey(), n.session)
		switch {
		case errors.Is(err, ErrUnknownSession) && (m.silence || total == Delegated{}): // what it used is in the one above
		case err != nil:
			return err
		case is.delegated() != Delegated{} || is.ValueUsed != total.Value || is.ActionCount != total.Actions || is.ValueHeld != 0:
			return fmt.Errorf("a settled session has %d and %d used, %d held and %+v delegated, and %+v was charged", is.ActionCount,
				is.ValueUsed, is.ValueHeld, is.delegated(), total)
		default:
			if left := m.mini.TTL(m.s.keys.Session(n.agent, n.session)); left > refusedFor+m.s.config.Retention {
				return fmt.Errorf("a settled session is stored for %s", left)
			}
		}
	}
	if !m.counted || m.delegates() {
		return errors.New("a settled session has parts, or the budget has a reservation of one")
	}
	return nil
}

// plant begins a tree, sometimes shortly before a day ends.
func (m *modelTree) plant(t *testing.T) {
	t.Helper()
	before := m.now.Truncate(day).Add(day - time.Duration(m.random.IntN(40)+1)*time.Second)
	if m.random.IntN(2) == 0 && before.After(m.now) {
		m.pass(before.Sub(m.now))
	}
	must(m.s.SetBudget(t.Context(), m.w.key, money.Max, BudgetDay))(t)
	m.observed = m.random.IntN(3) == 0
	root := must(m.s.CreateSession(t.Context(), m.w.key, NewSession{Agent: m.agents[0].ID, MaxActions: 200, MaxValue: 500,
		Lifetime: 10 * time.Minute, MaxLease: time.Minute, Observes: m.observed}))(t)
	m.nodes = []*modelNode{{place: place{root.ID, root.Agent}, observes: m.observed}}
	m.counted, m.holds, m.leases = false, nil, nil
}

func TestATreeStaysExactWhateverStepIsTheLast(t *testing.T) {
	t.Parallel()
	steps := 1_000
	switch {
	case suite.Long && suite.RaceDetector: // miniredis is ten times as slow with it
		steps = 4_000
	case suite.Long:
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
			m := &modelTree{s: s, mini: mini, now: now, w: w, agents: newAgents(t, s, w.key, 5), random: rand.New(rand.NewPCG(seed, 8))}
			m.limitDays(t)
			for range steps / processes / ofTree {
				m.plant(t)
				for step := range ofTree {
					err := m.step(t)
					if err == nil {
						err = m.watchBudget(t)
					}
					if err == nil && step%checkEvery == 0 {
						err = m.check(t)
					}
					if err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
				}
				mustDo(t, m.checkEnd(t))
			}
		})
	}
}
