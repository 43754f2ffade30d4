package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/money"
)

// Limits that change while charges and holds race for them are never exceeded, and the last ones are filled.
func TestLimitsHoldWhileTheyChange(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000, MaxValue: 100})
		second := must(Open(s.config))(t)
		defer second.Close()
		grant := w.exchange(t, s)
		var ceiling atomic.Int64 // the highest limit that has been asked for
		var spenders, changers sync.WaitGroup
		var done atomic.Bool
		for i := range 32 {
			store := []*Store{s, second}[i%2]
			spenders.Go(func() {
				for !done.Load() {
					_, _ = store.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 3})
					held, err := store.Begin(t.Context(), grant.AccessToken, w.beginning(2))
					if err == nil {
						must(store.Commit(t.Context(), grant.AccessToken, held.ID, Commit{Value: new(money.MicroUSD(1))}))(t)
					}
					if reached := new(LimitError); err != nil && !errors.As(err, &reached) {
						t.Error(err)
					}
				}
			})
		}
		for i := range 2 {
			changers.Go(func() {
				for j := range int64(30) {
					to := 100 + 20*j*int64(1-i) // one raises, one lowers
					ceiling.Store(max(ceiling.Load(), 100+20*j))
					session, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxValue: new(money.MicroUSD(to))})
					below := new(BelowUsageError)
					if errors.As(err, &below) {
						session.Usage = below.Usage
					} else if err != nil {
						t.Error(err)
					}
					if u := session.Usage; u.ValueUsed+u.ValueHeld > u.MaxValue {
						t.Errorf("beyond the limit: %+v", u)
					}
				}
			})
		}
		changers.Wait()
		done.Store(true)
		spenders.Wait()
		usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
		last := must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxValue: new(usage.ValueUsed + 10)}))(t)
		if usage.ValueHeld != 0 || usage.ValueUsed > usage.MaxValue || int64(usage.MaxValue) > ceiling.Load() {
			t.Errorf("%+v", usage)
		}
		for w.chargeValue(t, s, 1) == nil {
		}
		if usage = must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage; usage.ValueUsed != last.MaxValue {
			t.Errorf("filled to %+v, want %s", usage, last.MaxValue)
		}
	})
}

func TestARepeatedChangeOfLimitsDoesNotReopenASession(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		change := NewLimits{Lifetime: new(time.Hour), Idempotency: &Idempotency{Key: "longer"}}
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, change))(t)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, change))(t)
		if open := must(peek(t, s).ZCard(t.Context(), s.keys.OrganizationOpen(w.key.Organization)).Result())(t); open != 0 || !change.Idempotency.Outcome.Replayed {
			t.Errorf("%d sessions are open after the end, want 0; replayed %t", open, change.Idempotency.Outcome.Replayed)
		}
	})
}
