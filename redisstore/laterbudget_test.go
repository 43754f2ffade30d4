package redisstore

import (
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
		wantError(t, "what was granted before the charge", errOf(s.changeWithin(t.Context(), act, w.session.ID, topUp, granted)), kernel.ErrStale)
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
