package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// The end of a tree needs no memory: it frees some. So it works when Redis is full, and nothing is lost on the way.
func TestASessionClosesThoughRedisIsFull(t *testing.T) {
	t.Parallel()
	s, admin := withOwnRedis(t, Config{})
	w := newTenant(t, s, NewSession{MaxActions: 1})
	must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
	root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 50, MaxValue: 100, Lifetime: time.Hour}))(t)
	early, late := w.child(t, s, root.ID, 10, 40), w.child(t, s, root.ID, 10, 40)
	below := w.child(t, s, late.ID, 5, 20)
	for _, session := range []Session{root, early, late, below} {
		must(s.Charge(t.Context(), w.byKey(), session.ID, Charge{Count: 1, Value: 3}))(t)
	}
	isFull.begin(t, admin)
	wantError(t, "a charge of a full Redis", errOf(s.Charge(t.Context(), w.byKey(), root.ID, Charge{Count: 1, Value: 1})), ErrUnavailable)
	w.end(t, s, early.ID)
	w.wantUsed(t, s, root.ID, 2, 6, Delegated{10, 40})
	w.end(t, s, root.ID)
	w.wantUsed(t, s, late.ID, 2, 6, Delegated{})
	w.wantUsed(t, s, root.ID, 4, 12, Delegated{})
	w.wantBudget(t, s, 0, 12, 88)
	isFull.end(t, admin)
	w.wantUsed(t, s, root.ID, 4, 12, Delegated{})
}

// A refusal is the outcome of its key, like every refusal by a limit, so that a repetition never spends what an earlier answer
// denied. The refused request has given back what was over, so the next one finds the room.
func TestARefusedRequestWithAKeyStaysRefusedAndMakesRoomForTheNext(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 50, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		over := w.child(t, s, w.session.ID, 10, 90)
		must(s.Charge(t.Context(), w.byKey(), over.ID, Charge{Count: 1, Value: 5}))(t)
		mustDo(t, s.endOne(t.Context(), w.key.Organization, place{over.ID, over.Agent}))                                                // and it is not settled
		must(peek(t, s).ZAddXX(t.Context(), s.keys.Looks(w.session.ID, w.session.ID), redis.Z{Member: string(over.ID[:])}).Result())(t) // its first look is due
		charge := func(key string) (Usage, bool, error) {
			idem := &Idempotency{Key: key}
			usage, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 60, Idempotency: idem})
			return usage, idem.Outcome.Replayed, err
		}
		var limit *LimitError
		if _, again, err := charge("one"); again || !errors.As(err, &limit) || limit.Limit != "max_value_usd" {
			t.Errorf("at first: %v, %t", err, again)
		}
		w.wantUsed(t, s, w.session.ID, 1, 5, Delegated{})
		if _, again, err := charge("one"); !again || !errors.As(err, &limit) {
			t.Errorf("repeated: %v, %t", err, again)
		}
		w.wantUsed(t, s, w.session.ID, 1, 5, Delegated{})
		if usage, _, err := charge("two"); err != nil || usage.ValueUsed != 65 {
			t.Errorf("with another key: %+v, %v", usage, err)
		}
		if _, again, err := charge("one"); !again || !errors.As(err, &limit) {
			t.Errorf("repeated after that: %v, %t", err, again)
		}
		w.wantUsed(t, s, w.session.ID, 2, 65, Delegated{})
	})
}

// A whole branch that a crash left ended and unsettled comes back to the request that needs it: within a minute, however deep it is.
func TestABranchThatACrashLeftUnsettledComesBackWithinAMinute(t *testing.T) {
	t.Parallel()
	for name, need := range map[string]func(*testing.T, *Store, tenant, Session) error{
		"to its parent": func(t *testing.T, s *Store, w tenant, root Session) error {
			return errOf(s.Charge(t.Context(), w.byKey(), root.ID, Charge{Count: 1, Value: 96}))
		},
		"to the budget": func(t *testing.T, s *Store, w tenant, root Session) error {
			mustDo(t, s.endOne(t.Context(), w.key.Organization, place{root.ID, root.Agent}))
			return errOf(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 96, Lifetime: time.Minute}))
		},
	} {
		for _, silence := range []time.Duration{onItsWay, 40 * 24 * time.Hour} { // a session that is over is kept for less
			t.Run(fmt.Sprint(name, " after ", silence), func(t *testing.T) {
				t.Parallel()
				withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
					w := newTenant(t, s, NewSession{MaxActions: 1})
					must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
					n := NewSession{Agent: w.agent.ID, MaxActions: 50, MaxValue: 100, Lifetime: 100 * 24 * time.Hour}
					branch := []Session{must(s.CreateSession(t.Context(), w.key, n))(t)}
					for i := range mostLevels - 1 {
						branch = append(branch, w.child(t, s, branch[i].ID, 20, 80))
					}
					must(s.Charge(t.Context(), w.byKey(), branch[mostLevels-1].ID, Charge{Count: 1, Value: 4}))(t)
					for _, one := range branch[1:] {
						mustDo(t, s.endOne(t.Context(), w.key.Organization, place{one.ID, one.Agent})) // and it is not settled
					}
					err := withinAMinute(step, silence, func() error { return need(t, s, w, branch[0]) })
					wantError(t, "after a minute", err, nil)
					w.wantUsed(t, s, branch[1].ID, 1, 4, Delegated{})
				})
			})
		}
	}
}

// withinAMinute makes a request at each look of a minute after the silence, until it gets what it needs, and returns its last error. A
// request that may have run out of the time to settle, as on a busy machine, does not count; there are sixty at the most.
func withinAMinute(step func(time.Duration), silence time.Duration, request func() error) error {
	var err error
	for at, counted := silence, time.Duration(0); counted < time.Minute && at < silence+10*time.Minute; at += lookPause {
		step(at)
		began := time.Now()
		if err = request(); err == nil {
			return nil
		}
		if time.Since(began) < callTimeout {
			counted += lookPause
		}
	}
	return err
}

func (w tenant) wantBudget(t *testing.T, s *Store, reserved, used, remaining money.MicroUSD) {
	t.Helper()
	if is := must(s.Budget(t.Context(), w.key))(t); is.Reserved != reserved || is.Used != used || is.Remaining() != remaining {
		t.Errorf("the budget is %+v with %d remaining, want %d reserved, %d used and %d remaining", is, is.Remaining(), reserved, used, remaining)
	}
}

// What a session that observes is charged between the reservation and the change of its limits is reserved too.
func TestASessionIsTiedToTheBudgetWithAllThatItHasUsed(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10, MaxValue: 10, Observes: true}, func(t *testing.T, s *Store, w tenant) {
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
