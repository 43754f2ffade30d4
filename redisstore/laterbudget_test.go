package redisstore

import (
	"errors"
	"testing"
	"time"

	"remit/money"
	"remit/redisstore/internal/kernel"
)

func (w tenant) wantBudget(t *testing.T, s *Store, reserved, used, remaining money.MicroUSD) {
	t.Helper()
	if is := must(s.Budget(t.Context(), w.key))(t); is.Reserved != reserved || is.Used != used || is.Remaining() != remaining {
		t.Errorf("the budget is %+v with %d remaining, want %d reserved, %d used and %d remaining", is, is.Remaining(), reserved, used, remaining)
	}
}

// A root session that observed beyond its limits before there was a budget reserves what it has used, too, when it is topped up. So
// the budget never counts more than it has.
func TestWhatWasObservedBeforeThereWasABudgetIsReservedWithTheNextTopUp(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 10, Observes: true, MaxLease: time.Minute})
		charge := func(value money.MicroUSD) (Usage, error) {
			return s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: value})
		}
		must(charge(70))(t)
		must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
		must(charge(10))(t) // it is in no budget yet
		other := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 30, Lifetime: time.Minute}))(t)
		w.wantBudget(t, s, 30, 0, 70)
		topUp := NewLimits{AddValue: new(money.MicroUSD(5))}
		_, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, topUp)
		var exhausted *BudgetError
		if !errors.As(err, &exhausted) || exhausted.Remaining != 70 {
			t.Errorf("a top-up of a session that has used more than the budget has: %v", err)
		}
		w.wantBudget(t, s, 30, 0, 70)
		w.end(t, s, other.ID)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, topUp))(t)
		w.wantBudget(t, s, 80, 0, 20)
		if _, err := charge(1); err == nil {
			t.Error("it goes on beyond its limit although a budget counts it")
		}
		w.end(t, s, w.session.ID)
		w.wantBudget(t, s, 0, 80, 20)
	})
}

// What a session that observes is charged between the reservation and the change of its limits is reserved too.
func TestASessionIsTiedToTheBudgetWithAllThatItHasUsed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 10, Observes: true})
		must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
		act, topUp := ownActor(w.key.Organization, w.agent.ID), NewLimits{AddValue: new(money.MicroUSD(5))}
		at := must(s.readLimits(t.Context(), act.Flow, w.session.ID))(t)
		at.budgeted = true
		granted := must(s.grantAbove(t.Context(), act, at, topUp))(t)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 40}))(t)
		_, err := s.changeWithin(t.Context(), act, w.session.ID, topUp, granted)
		wantError(t, "what was granted before the charge", err, kernel.ErrStale)
		w.wantBudget(t, s, 15, 0, 85)
		must(s.changeLimits(t.Context(), act, at, topUp))(t) // asks for a grant again
		w.wantBudget(t, s, 40, 0, 60)
		w.end(t, s, w.session.ID)
		w.wantBudget(t, s, 0, 40, 60)
	})
}

// A top-up that was broken off after it reserved for a session in no budget yet gives that back to the request that needs it, once the
// session is over; not when its record expires, days later.
func TestAReservationForASessionInNoBudgetComesBack(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(t *testing.T, s *Store, w tenant){
		"ended":   func(t *testing.T, s *Store, w tenant) { must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t) },
		"revoked": func(t *testing.T, s *Store, w tenant) { must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t) },
		"expired": func(*testing.T, *Store, tenant) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 10, Lifetime: time.Minute})
				must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
				act := ownActor(w.key.Organization, w.agent.ID)
				at := must(s.readLimits(t.Context(), act.Flow, w.session.ID))(t)
				at.budgeted = true
				must(s.grantAbove(t.Context(), act, at, NewLimits{MaxValue: new(money.MicroUSD(90))}))(t) // and then the service crashes
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 3}))(t)
				w.wantBudget(t, s, 90, 0, 10)
				over(t, s, w)
				step(time.Minute)
				must(s.CreateSession(t.Context(), w.key, NewSession{Agent: newAgents(t, s, w.key, 1)[0].ID, MaxActions: 1, MaxValue: 100, Lifetime: time.Minute}))(t)
				w.wantBudget(t, s, 100, 0, 0)
			})
		})
	}
}
