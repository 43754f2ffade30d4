package redisstore

import (
	"slices"
	"testing"
	"time"

	"remit/money"
)

func TestChargesThatShareACommandAreObservedEach(t *testing.T) {
	aloneAndShared(t, func(t *testing.T, crowd func(*testing.T, *Store)) {
		eachRedis(t, Config{}, func(t *testing.T, s *Store) {
			crowd(t, s)
			w := newTenant(t, s, NewSession{MaxActions: 3, MaxValue: 100, Observes: true})
			enforcing := w
			enforcing.session = w.newSession(t, s, time.Hour)
			counts, limits := make([]int64, 40), make([]string, 40)
			concurrently(t, 40, func(i int) {
				usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1}))(t)
				counts[i], limits[i] = usage.ActionCount, usage.WouldRefuse
				must(s.Charge(t.Context(), w.byKey(), enforcing.session.ID, Charge{Count: 1}))(t)
			})
			slices.Sort(counts)
			wantEqual(t, "how many counts there were", len(slices.Compact(counts)), 40)
			wantEqual(t, "how many would have been refused", len(slices.DeleteFunc(limits, func(limit string) bool { return limit == "" })), 37)
			wantEqual(t, "what it counted", *must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).ObservedRefusals, 37)
			w.wantEvents(t, s, "session.would_refuse", 1)
		})
	})
}

// A session that never observed has none of its fields, and costs what it cost.
func TestASessionThatEnforcesHasNoFieldOfObserving(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
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
