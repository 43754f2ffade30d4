package redisstore

import (
	"sync"
	"testing"
	"time"

	"remit/money"
)

func TestChargesThatShareACommandAreObservedEach(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
			crowd(t, s)
			w := newTenant(t, s, NewSession{MaxActions: 3, MaxValue: 100, Observes: true})
			enforcing := w
			enforcing.session = w.newSession(t, s, time.Hour)
			var would, charged sync.Map
			var group sync.WaitGroup
			for i := range 40 {
				group.Go(func() {
					usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1}))(t)
					if usage.WouldRefuse != "" {
						would.Store(i, usage.WouldRefuse)
					}
					charged.Store(usage.ActionCount, true)
					must(s.Charge(t.Context(), w.byKey(), enforcing.session.ID, Charge{Count: 1}))(t)
				})
			}
			group.Wait()
			if size(&would) != 37 || size(&charged) != 40 {
				t.Errorf("%d would have been refused, %d different counts", size(&would), size(&charged))
			}
			if is := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); *is.ObservedRefusals != 37 {
				t.Errorf("it counted %d", *is.ObservedRefusals)
			}
			w.wantEvents(t, s, "session.would_refuse", 1)
		})
	})
}

// A session that never observed has none of its fields, and costs what it cost.
func TestASessionThatEnforcesHasNoFieldOfObserving(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Observes: new(false)}))(t)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1}))(t)
		fields := must(peek(t, s).HGetAll(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
		for _, name := range []string{"r", "oc", "h", "gb"} {
			if value, has := fields[name]; has {
				t.Errorf("%s is %q", name, value)
			}
		}
		if got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); got.Observes || got.ObservedRefusals != nil {
			t.Errorf("%+v", got)
		}
	})
}

func size(m *sync.Map) (count int) {
	m.Range(func(_, _ any) bool { count++; return true })
	return count
}

func TestWhatRemainsIsNeitherDelegatedNorBelowNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		Usage
		actions int64
		value   money.MicroUSD
	}{
		{Usage{MaxActions: 10, ActionCount: 1, MaxValue: 100, ValueUsed: 10, ValueHeld: 5, Withheld: 3, Delegated: &Delegated{4, 50}}, 5, 32},
		{Usage{MaxActions: 3, ActionCount: 5, MaxValue: 100, ValueUsed: 90, ValueHeld: 20}, 0, 0},
	} {
		if actions, value := test.RemainingActions(), test.RemainingValue(); actions != test.actions || value != test.value {
			t.Errorf("%+v leaves %d and %d", test.Usage, actions, value)
		}
	}
}
