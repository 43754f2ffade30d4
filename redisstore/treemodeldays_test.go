package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// modelDays is what the agents with a limit for a day have used today.
type modelDays struct {
	limits, used map[uuid.UUID]money.MicroUSD
	beyond       map[uuid.UUID]bool // it may have used more than its limit, in sessions that observe
}

// begin begins a day.
func (d *modelDays) begin() {
	d.used, d.beyond = map[uuid.UUID]money.MicroUSD{}, map[uuid.UUID]bool{}
}

func (m *modelTree) count(agent uuid.UUID, by money.MicroUSD) {
	if _, limited := m.days.limits[agent]; limited {
		m.days.used[agent] += by
		m.days.beyond[agent] = m.days.beyond[agent] || m.observed
	}
}

// modelHold is a transaction.
type modelHold struct {
	id        uuid.UUID
	of        *modelNode
	value     money.MicroUSD // held, then what it charged
	expires   time.Time
	at        time.Time // when it began, or was committed
	counted   money.MicroUSD
	committed bool
	gone      bool // it holds nothing any more
	done      bool // rolled back
}

// modelLease is a lease; its session's own usage has all of it until it is settled.
type modelLease struct {
	id      uuid.UUID
	of      *modelNode
	is      Delegated
	at      time.Time
	settled bool
}

// limitDays gives some agents a limit for a day.
func (m *modelTree) limitDays(t *testing.T) {
	m.days.limits = map[uuid.UUID]money.MicroUSD{}
	m.days.begin()
	for i, agent := range m.agents[:3] {
		limit := money.MicroUSD(150 * (i + 1))
		must(m.s.ChangeAgent(t.Context(), m.w.key, agent.ID, AgentChanges{
			Limits: NewAgentLimits{ValuePerDay: LimitChange{true, new(int64(limit))}}}))(t)
		m.days.limits[agent.ID] = limit
	}
}

// checkDays compares what the agents have used today with what they were charged, hold and lease.
func (m *modelTree) checkDays(t *testing.T) error {
	for agent, limit := range m.days.limits {
		is, err := m.s.Agent(t.Context(), m.w.key, agent)
		switch {
		case err != nil:
			return err
		case *is.Usage.ValueToday != m.days.used[agent]:
			return fmt.Errorf("an agent has used %d today, want %d", *is.Usage.ValueToday, m.days.used[agent])
		case m.days.used[agent] > limit && !m.days.beyond[agent]:
			return fmt.Errorf("an agent has used %d of %d today", m.days.used[agent], limit)
		}
	}
	return nil
}

func (m *modelTree) token(n *modelNode) AccessToken {
	return AccessToken{Organization: m.w.key.Organization, Agent: n.agent, Family: n.agent}
}

func (m *modelTree) hold(t *testing.T, n *modelNode) error {
	value, lifetime := money.MicroUSD(m.random.Int64N(30)), time.Duration(5+m.random.IntN(100))*time.Second
	begun, err := m.s.Begin(t.Context(), m.token(n), NewTransaction{Session: n.session, ActionType: "x", PreState: "{}", Value: value, Lifetime: lifetime})
	if err == nil {
		n.spend(1, 0)
		m.count(n.agent, value)
		m.holds = append(m.holds, &modelHold{id: begun.ID, of: n, value: value, counted: value, at: m.now, expires: m.now.Add(lifetime)})
	}
	return m.expectedIn(n, err)
}

// holdsExpire gives back to the days what expired transactions hold. Before the day turns, so that it is the day on which they counted.
func (m *modelTree) holdsExpire() {
	for _, h := range m.holds {
		if !h.committed && !h.gone && !m.now.Before(h.expires) {
			m.release(h)
		}
	}
}

// release gives what is held back to the day on which it counted.
func (m *modelTree) release(h *modelHold) {
	h.gone = true
	if sameDay(h.at, m.now) {
		m.count(h.of.agent, -h.counted)
	}
}

// noteEnds notes which sessions have ended, which rolls their transactions back.
func (m *modelTree) noteEnds(t *testing.T, n *modelNode) error {
	is, err := m.s.Session(t.Context(), m.w.byKey(), n.session)
	if err == nil && is.Status == Completed && !n.ended {
		n.ended = true
		for _, h := range m.holds {
			if h.of == n && !h.committed && !h.gone {
				m.release(h)
				h.done = true
			}
		}
	}
	err = expected(err)
	for _, child := range n.below {
		err = errors.Join(err, m.noteEnds(t, child))
	}
	return err
}

func (m *modelTree) closed(n *modelNode) bool {
	return m.mini.HGet(m.s.keys.Session(n.agent, n.session), "cl") != ""
}

func (m *modelTree) finishHold(t *testing.T) error {
	if len(m.holds) == 0 {
		return nil
	}
	h := m.holds[m.random.IntN(len(m.holds))]
	if m.random.IntN(3) == 0 {
		return m.rollBack(t, h)
	}
	cost := money.MicroUSD(m.random.Int64N(40))
	committed, err := m.s.Commit(t.Context(), m.token(h.of), h.id, Commit{Value: &cost})
	if err != nil {
		return expectedOfTransaction(err)
	}
	if h.committed || h.done {
		return errors.New("a transaction is committed that was settled")
	}
	before := money.MicroUSD(0)
	if !h.gone {
		m.release(h)
		if !sameDay(h.at, m.now) {
			before = h.value
		}
	}
	h.value, h.at, h.committed = committed.Value, m.now, true
	h.counted = max(h.value-before, 0)
	h.of.spend(0, h.value)
	m.count(h.of.agent, h.counted)
	return nil
}

func expectedOfTransaction(err error) error {
	var settled *NotPendingError
	if errors.As(err, &settled) || errors.Is(err, ErrUnknownTransaction) {
		return nil
	}
	return expected(err)
}

func (m *modelTree) rollBack(t *testing.T, h *modelHold) error {
	closed := m.closed(h.of)
	_, err := m.s.Rollback(t.Context(), m.w.byKey(), h.id, Rollback{})
	if err != nil {
		return expectedOfTransaction(err)
	}
	switch {
	case h.done:
		return errors.New("a transaction is rolled back again")
	case !h.committed:
		m.release(h)
	case !closed:
		h.of.spend(0, -h.value)
		if sameDay(h.at, m.now) {
			m.count(h.of.agent, -h.counted)
		}
	}
	h.done = true
	return nil
}

func (m *modelTree) lease(t *testing.T, n *modelNode) error {
	asked := NewLease{MaxActions: 1 + m.random.Int64N(5), MaxValue: money.MicroUSD(m.random.Int64N(30)),
		Lifetime: time.Duration(5+m.random.IntN(50)) * time.Second, Partial: m.random.IntN(2) == 0}
	granted, err := m.s.GrantLease(t.Context(), m.w.byKey(), n.session, asked)
	if err == nil {
		l := &modelLease{id: granted.ID, of: n, is: Delegated{granted.MaxActions, granted.MaxValue}, at: m.now}
		m.leases = append(m.leases, l)
		n.spend(l.is.Actions, l.is.Value)
		m.count(n.agent, l.is.Value)
	}
	return m.expectedIn(n, err)
}

func (m *modelTree) settleLease(t *testing.T) error {
	if len(m.leases) == 0 {
		return nil
	}
	l := m.leases[m.random.IntN(len(m.leases))]
	if l.settled {
		return nil
	}
	closed := m.closed(l.of)
	settled, err := m.s.SettleLease(t.Context(), m.w.byKey(), l.id, NewSettlement{
		ActionCount: m.random.Int64N(6), ValueUsed: money.MicroUSD(m.random.Int64N(40))})
	if err != nil {
		if errors.Is(err, ErrUnknownLease) {
			return nil
		}
		return expected(err)
	}
	l.settled = true
	actions, value := settled.Settlement.ActionCount-settled.Settlement.OverageActions, settled.Settlement.ValueUsed-settled.Settlement.Overage
	if !closed {
		l.of.spend(actions-l.is.Actions, value-l.is.Value)
	}
	if value > l.is.Value || sameDay(l.at, m.now) {
		m.count(l.of.agent, value-l.is.Value)
	}
	return nil
}
