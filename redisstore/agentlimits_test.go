package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/money"
)

// limitedTenant is newTenant with limits of the agent.
func limitedTenant(t *testing.T, s *Store, l AgentLimits, n NewSession) tenant {
	t.Helper()
	w := tenant{key: newOrganization(t, s), secret: [32]byte{2}}
	w.agent = must(s.CreateAgent(t.Context(), w.key, Agent{Name: "scout", Scopes: []string{"read"}, Limits: l}, w.secret, nil))(t)
	if n.MaxActions == 0 {
		n.MaxActions = 1_000_000
	}
	n.Agent, n.Lifetime = w.agent.ID, max(n.Lifetime, 48*time.Hour)
	w.session = must(s.CreateSession(t.Context(), w.key, n))(t)
	return w
}

// another returns the tenant with another session of the same agent.
func (w tenant) another(t *testing.T, s *Store, n NewSession) tenant {
	t.Helper()
	n.Agent, n.MaxActions, n.Lifetime = w.agent.ID, 1_000_000, max(n.Lifetime, 48*time.Hour)
	w.session = must(s.CreateSession(t.Context(), w.key, n))(t)
	return w
}

func perDay(value money.MicroUSD) AgentLimits { return AgentLimits{ValuePerDay: &value} }

// chargeValue charges one action with this value.
func (w tenant) chargeValue(t *testing.T, s *Store, value money.MicroUSD) error {
	t.Helper()
	return errOf(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: value}))
}

// wantAgentLimit fails unless err is the refusal by this limit.
func wantAgentLimit(t *testing.T, what string, err error, limit string) {
	t.Helper()
	var refused *AgentLimitError
	if !errors.As(err, &refused) || refused.Limit != limit {
		t.Errorf("%s: %v, want a refusal by %q", what, err, limit)
	}
}

const day = 24 * time.Hour

// fromMidnight runs the test on a Redis whose clock it sets, from the start of a UTC day.
func fromMidnight(t *testing.T, test func(t *testing.T, s *Store, clock func(time.Duration))) {
	t.Helper()
	t.Parallel()
	mini, midnight := miniredis.RunT(t), time.Now().UTC().Truncate(day)
	clock := func(ahead time.Duration) { mini.SetTime(midnight.Add(ahead)) }
	clock(0)
	test(t, openStore(t, Config{}, "redis://"+mini.Addr(), nil), clock)
}

func TestCallsThatShareACommandAreJudgedOneByOne(t *testing.T) {
	onEachSingle(t, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, perDay(50), NewSession{MaxValue: 1000})
		other := w.another(t, s, NewSession{MaxValue: 1000})
		token := byToken(w.exchange(t, s)) // it calls nothing before the charge
		g := newGate(t, s)
		var charged atomic.Int64
		var calls []func()
		for i := range 24 {
			id := []uuid.UUID{w.session.ID, other.session.ID}[i%2]
			calls = append(calls, func() {
				_, err := s.Charge(context.Background(), token, id, Charge{Count: 1, Value: 7})
				if err == nil {
					charged.Add(1)
				} else {
					wantAgentLimit(t, "charge", err, LimitValuePerDay)
				}
			})
		}
		g.pass(t, s, calls...)
		if _, sent := g.sent.Load(chargeSession.Script.MergedSHA()); !sent || charged.Load() != 7 {
			t.Errorf("%d charges of 7 fit into 50; merged: %v", charged.Load(), sent)
		}
	})
}

func TestAnAgentWithoutLimitsHasNoneOfTheirFields(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, AgentLimits{ValuePerDay: new(money.MicroUSD(9)), ActionsPerMinute: new(int64(9)), OpenSessions: new(int64(9))}, NewSession{})
		none := LimitChange{Given: true}
		must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, AgentChanges{Limits: NewAgentLimits{none, none, none}}))(t)
		fields := must(peek(t, s).HMGet(t.Context(), s.keys.Agent(w.agent.ID), "restricted", "max_open_sessions").Result())(t)
		wantEqual(t, "its fields", fields, []any{nil, nil})
	})
}
