package redisstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/test/redistest"
)

// awayFromMidnight waits until the day has a minute left, by the machine's clock.
func awayFromMidnight() {
	if left := time.Until(time.Now().UTC().Truncate(day).Add(day)); left < time.Minute {
		time.Sleep(left)
	}
}

// Two instances charge 20 sessions of one agent at once, until the day has not a micro-dollar left. What a minute has left is counted by
// the same script.
func TestTheLimitPerDayHoldsOverSessionsThatTwoInstancesUseAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		const most = 2000
		awayFromMidnight()
		n := NewSession{MaxValue: money.USD}
		w, instances := limitedTenant(t, s, perDay(most), n), [2]*Store{s, anotherInstance(t, s)}
		var charged atomic.Int64
		var all sync.WaitGroup
		sessions := make([]tenant, 20)
		for i := range sessions {
			sessions[i] = w.another(t, s, n)
			for _, instance := range instances {
				all.Go(func() {
					for value := money.MicroUSD(9); value > 0; {
						err := sessions[i].chargeValue(t, instance, value)
						if err == nil {
							charged.Add(int64(value))
							continue
						}
						wantAgentLimit(t, "charge", err, LimitValuePerDay)
						value--
					}
				})
			}
		}
		redistest.WaitAtMost(t, time.Minute, &all)
		if used := sessionsSum(t, s, sessions...).Value; used != most || charged.Load() != most {
			t.Errorf("the sessions have used %d of %d a day, and %d were acknowledged", used, most, charged.Load())
		}
		w.wantToday(t, s, "at last", most)
	})
}

func TestTheLimitOfOpenSessionsHoldsThoughTwoInstancesCreateThemAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const most = 7
		w := limitedTenant(t, s, AgentLimits{OpenSessions: new(int64(most))}, NewSession{})
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		instances := [2]*Store{s, anotherInstance(t, s)}
		for range 2 { // again when all have ended
			var all sync.WaitGroup
			var lock sync.Mutex
			var made []uuid.UUID
			for i := range 40 {
				all.Go(func() {
					created, err := instances[i%2].CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour})
					if err != nil {
						wantAgentLimit(t, "creation", err, LimitOpenSessions)
						return
					}
					lock.Lock()
					defer lock.Unlock()
					made = append(made, created.ID)
				})
			}
			redistest.WaitAtMost(t, time.Minute, &all)
			if got := *must(s.Agent(t.Context(), w.key, w.agent.ID))(t).Usage.OpenSessions; got != most || len(made) != most {
				t.Errorf("%d were created and %d are open, want %d", len(made), got, most)
			}
			for _, id := range made {
				must(s.EndSession(t.Context(), w.byKey(), id))(t)
			}
		}
	})
}
