package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// observingChild creates a child that observes, with room for 5 actions and 50 micro-USD, and at most 10 in one action.
func (w tenant) observingChild(t *testing.T, s *Store, parent Session) (Session, error) {
	t.Helper()
	return s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: parent.ID, MaxActions: 5,
		MaxValue: 50, MaxPerAction: new(money.MicroUSD(10)), Lifetime: time.Minute, MaxLease: parent.MaxLease, Observes: true})
}

// A child observes where its parent does. It never goes beyond what its parent has set aside for it, so that the parent's usage
// stay exact.
func TestAChildOfASessionThatObservesObservesWithinItsPart(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 20, MaxValue: 100, MaxLease: time.Minute, Observes: true})
		child := must(w.observingChild(t, s, w.session))(t)
		if !child.Observes || child.ObservedRefusals == nil || *child.ObservedRefusals != 0 {
			t.Errorf("created as %+v", child)
		}
		below := must(w.observingChild(t, s, child))(t) // takes all that the child has
		charge := func(session uuid.UUID, c Charge) (Usage, error) { return s.Charge(t.Context(), w.byKey(), session, c) }
		if usage, err := charge(below.ID, Charge{Count: 1, Value: 30}); err != nil || usage.WouldRefuse != "max_value_usd_per_action" {
			t.Errorf("beyond the limit per action: %+v, %v", usage, err)
		}
		var limit *LimitError
		for want, c := range map[string]Charge{"max_value_usd": {Count: 1, Value: 21}, "max_actions": {Count: 5}} {
			if _, err := charge(below.ID, c); !errors.As(err, &limit) || limit.Limit != want {
				t.Errorf("beyond %s of its part: %v", want, err)
			}
			if outcomes := must(s.ChargeBatch(t.Context(), w.byKey(), []BatchCharge{{Session: below.ID, Charge: c}}, nil))(t); !errors.As(outcomes[0].Err, &limit) || limit.Limit != want {
				t.Errorf("beyond %s of its part in a batch: %v", want, outcomes[0].Err)
			}
		}
		if _, err := s.GrantLease(t.Context(), w.byKey(), below.ID, NewLease{MaxActions: 5, Lifetime: time.Second}); !errors.As(err, &limit) || limit.Limit != "max_actions" {
			t.Errorf("a lease beyond its part: %v", err)
		}
		lease := must(s.GrantLease(t.Context(), w.byKey(), below.ID, NewLease{MaxActions: 2, MaxValue: 5, Lifetime: time.Second}))(t)
		settled := must(s.SettleLease(t.Context(), w.byKey(), lease.ID, NewSettlement{ActionCount: 9, ValueUsed: 6}))(t).Settlement
		if settled.OverageActions != 5 || settled.Overage != 0 {
			t.Errorf("a lease that spent more than its session has: %+v", settled)
		}
		token := AccessToken{Organization: w.key.Organization, Agent: below.Agent, Family: below.Agent}
		if _, err := s.Begin(t.Context(), token, NewTransaction{Session: below.ID, ActionType: "x", PreState: "{}", Lifetime: time.Second}); !errors.As(err, &limit) || limit.Limit != "max_actions" {
			t.Errorf("a begin beyond its part: %v", err)
		}
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{5, 50})
		w.end(t, s, w.session.ID)
		w.wantUsed(t, s, w.session.ID, 5, 36, Delegated{})
	})
}

// Where the parent enforces, no child observes: not by its creation, not by a change, and not any more when the parent enforces
// again, however the requests overlap.
func TestNoSessionObservesBelowOneThatEnforces(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		_, err := w.observingChild(t, s, w.session)
		wantError(t, "a creation", err, ErrParentEnforces)
		child := w.child(t, s, w.session.ID, 20, 60)
		observe, enforce := NewLimits{Observes: new(true)}, NewLimits{Observes: new(false)}
		_, err = s.ChangeLimits(t.Context(), w.key, child.ID, observe)
		wantError(t, "a change", err, ErrParentEnforces)
		_, err = s.ChangeLimits(t.Context(), w.key, child.ID, NewLimits{Observes: new(true), AddActions: new(int64(5)), AddValue: new(money.MicroUSD(7))})
		wantError(t, "a change that raises limits too", err, ErrParentEnforces)
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{20, 60})

		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, observe))(t)
		if is := must(s.ChangeLimits(t.Context(), w.key, child.ID, observe))(t); !is.Observes {
			t.Error("a child of a session that observes does not begin to")
		}
		below := must(w.observingChild(t, s, child))(t)
		act := ownActor(w.key.Organization, below.Agent)
		at := must(s.readLimits(t.Context(), act.Flow, below.ID))(t)
		granted := must(s.grantAbove(t.Context(), act, at, observe))(t) // a request to observe stops here
		lost := NewID(w.agent.ID)                                       // and so does a creation
		n := NewSession{Agent: w.agent.ID, Parent: child.ID, MaxActions: 1, Lifetime: time.Second, Observes: true}
		part := must(readSetAside(must(s.setAside(t.Context(), setAsidePart, ownActor(w.key.Organization, child.Agent), lost, n))(t), nil))(t)

		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, enforce))(t)
		for _, session := range []uuid.UUID{w.session.ID, child.ID, below.ID} {
			if is := must(s.Session(t.Context(), w.byKey(), session))(t); is.Observes || is.ObservedRefusals == nil {
				t.Errorf("after the root enforces again: %+v", is)
			}
		}
		_, err = s.changeWithin(t.Context(), act, below.ID, observe, granted)
		wantError(t, "what was granted before", err, kernel.ErrStale)
		if _, err = s.createOfPart(t.Context(), ownActor(w.key.Organization, child.Agent), n, part); !errors.Is(err, kernel.ErrGivenUp) {
			t.Errorf("a creation that began before: %v", err)
		}
		if _, err = s.Session(t.Context(), w.byKey(), lost); !errors.Is(err, ErrUnknownSession) {
			t.Errorf("the session of a creation that began before: %v", err)
		}
	})
}

// A session that observes sets parts aside beyond its limits, and counts that as it counts charges.
func TestASessionThatObservesDelegatesWhatItsLimitsWouldRefuse(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 5, MaxValue: 10, Observes: true})
		first := w.child(t, s, w.session.ID, 3, 8)
		w.wantObserved(t, s, true, 0)
		second := w.child(t, s, w.session.ID, 3, 8)
		w.wantObserved(t, s, true, 1)
		must(s.ChangeLimits(t.Context(), w.key, first.ID, NewLimits{AddValue: new(money.MicroUSD(4))}))(t)
		w.wantObserved(t, s, true, 2)
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{6, 20})
		must(s.Charge(t.Context(), w.byKey(), first.ID, Charge{Count: 3, Value: 12}))(t)
		must(s.Charge(t.Context(), w.byKey(), second.ID, Charge{Count: 1, Value: 1}))(t)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Observes: new(false)}))(t)
		_, err := s.ChangeLimits(t.Context(), w.key, second.ID, NewLimits{AddValue: new(money.MicroUSD(1))})
		var refused *ParentError
		if !errors.As(err, &refused) || refused.Limit != "max_value_usd" {
			t.Errorf("a top-up of a child after the parent enforces again: %v", err)
		}
		w.end(t, s, w.session.ID)
		w.wantUsed(t, s, w.session.ID, 4, 13, Delegated{})
	})
}
