package redisstore

import (
	"errors"
	"testing"
	"time"

	"remit/money"
)

// A parent with max_committed gives its children one, which rises with a top-up. One that a child was given stays.
func TestATopUpOfAChildRaisesWhatItMayCommit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, MaxCommitted: new(money.MicroUSD(100))})
		child := w.child(t, s, w.session.ID, 20, 40)
		below := w.child(t, s, child.ID, 10, 10)
		own := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 9,
			MaxValue: 10, MaxCommitted: new(money.MicroUSD(10)), Lifetime: time.Minute}))(t)
		for _, row := range []struct {
			session         Session
			committed, fits money.MicroUSD
		}{{below, 15, 15}, {own, 10, 10}} {
			changed := must(s.ChangeLimits(t.Context(), w.key, row.session.ID, NewLimits{AddValue: new(money.MicroUSD(5))}))(t)
			if changed.MaxValue != 15 || *changed.MaxCommitted != row.committed {
				t.Errorf("it has %d, and commits %d; want 15 and %d", changed.MaxValue, *changed.MaxCommitted, row.committed)
			}
			var limit *LimitError
			_, err := s.Charge(t.Context(), w.byKey(), row.session.ID, Charge{Count: 1, Value: row.fits + 1})
			if !errors.As(err, &limit) {
				t.Errorf("one more: %v", err)
			}
			must(s.Charge(t.Context(), w.byKey(), row.session.ID, Charge{Count: 1, Value: row.fits}))(t)
		}
		lower := must(s.ChangeLimits(t.Context(), w.key, child.ID, NewLimits{MaxValue: new(money.MicroUSD(30))}))(t)
		if *lower.MaxCommitted != 40 {
			t.Errorf("a lower limit lowered what it commits to %d", *lower.MaxCommitted)
		}
	})
}

// What a child commits and rolls back counts in its parent's value_committed_usd, so it commits no more than its part.
func TestAChildCommitsNoMoreThanItsPartAfterATopUp(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 50, MaxCommitted: new(money.MicroUSD(50))})
		parent := w.session
		w.session = must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: parent.ID, MaxActions: 20,
			MaxValue: 10, Lifetime: time.Minute}))(t)
		token := w.exchange(t, s).AccessToken
		undone := w.commit(t, s, token, 10)
		must(s.Rollback(t.Context(), w.byKey(), undone.ID, Rollback{}))(t)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{AddValue: new(money.MicroUSD(5))}))(t)
		var limit *LimitError
		if _, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 6}); !errors.As(err, &limit) || limit.Limit != "max_committed_usd" {
			t.Errorf("beyond its part: %v", err)
		}
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 5}))(t)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		is := must(s.Session(t.Context(), w.byKey(), parent.ID))(t)
		if is.ValueUsed != 5 || is.ValueCommitted != 15 || is.RemainingValue() != 35 {
			t.Errorf("the parent has %d used, %d committed and %d left; want 5, 15 and 35", is.ValueUsed, is.ValueCommitted, is.RemainingValue())
		}
	})
}
