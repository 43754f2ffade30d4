package redisstore

import (
	"sync/atomic"
	"testing"
	"time"

	"remit/money"
)

// Two instances charge 20 sessions of one agent at once, until the day has not a micro-dollar left. What a minute has left is counted by
// the same script.
func TestTheLimitPerDayHoldsOverSessionsThatTwoInstancesUseAtOnce(t *testing.T) {
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		const most = 2000
		if left := time.Until(time.Now().UTC().Truncate(day).Add(day)); left < time.Minute {
			time.Sleep(left) // so that no other day begins meanwhile
		}
		n := NewSession{MaxValue: money.USD}
		w, instances := limitedTenant(t, s, perDay(most), n), [2]*Store{s, anotherInstance(t, s)}
		var charged atomic.Int64
		sessions := make([]tenant, 20)
		for i := range sessions {
			sessions[i] = w.another(t, s, n)
		}
		concurrently(t, 2*len(sessions), func(i int) {
			for value := money.MicroUSD(9); value > 0; {
				err := sessions[i/2].chargeValue(t, instances[i%2], value)
				if err == nil {
					charged.Add(int64(value))
					continue
				}
				wantAgentLimit(t, "charge", err, LimitValuePerDay)
				value--
			}
		})
		if used := sessionsSum(t, s, sessions...).Value; used != most || charged.Load() != most {
			t.Errorf("the sessions have used %d of %d a day, and %d were acknowledged", used, most, charged.Load())
		}
		wantEqual(t, "what is used today", *must(s.Agent(t.Context(), w.key, w.agent.ID))(t).Usage.ValueToday, most)
	})
}

func TestTheLimitOfOpenSessionsHoldsThoughTwoInstancesCreateThemAtOnce(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const most = 7
		w := limitedTenant(t, s, AgentLimits{OpenSessions: new(int64(most))}, NewSession{})
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		instances := [2]*Store{s, anotherInstance(t, s)}
		for range 2 { // again when all have ended
			var made atomic.Int64
			concurrently(t, 40, func(i int) {
				_, err := instances[i%2].CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour})
				if err == nil {
					made.Add(1)
				} else {
					wantAgentLimit(t, "creation", err, LimitOpenSessions)
				}
			})
			if got := *must(s.Agent(t.Context(), w.key, w.agent.ID))(t).Usage.OpenSessions; got != most || made.Load() != most {
				t.Errorf("%d were created and %d are open, want %d", made.Load(), got, most)
			}
			for _, id := range indexed(t, s, s.keys.OrganizationOpen(w.key.Organization)) {
				must(s.EndSession(t.Context(), w.byKey(), id))(t)
			}
		}
	})
}
