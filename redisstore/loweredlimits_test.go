package redisstore

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

var (
	looseLimits = NewSession{MaxActions: 1000, MaxValue: 1000, MaxLease: time.Minute, MaxPerAction: new(money.MicroUSD(100))}
	lower       = NewLimits{MaxLease: new(5 * time.Second), PerAction: LimitChange{true, new(int64(10))}}
)

// looseChild creates a child that leases and spends as much as its parent.
func (w tenant) looseChild(t *testing.T, s *Store, parent Session) Session {
	t.Helper()
	return must(s.CreateChildSession(t.Context(), w.byKey(), w.loose(parent)))(t)
}

func (w tenant) loose(parent Session) NewSession {
	return NewSession{Agent: w.agent.ID, Parent: parent.ID, MaxActions: 10, MaxValue: 10, Lifetime: 10 * time.Minute,
		MaxLease: parent.MaxLease}
}

// wantLowered checks that a session has no more than lower leaves.
func (w tenant) wantLowered(t *testing.T, s *Store, what string, session uuid.UUID) {
	t.Helper()
	is := must(s.Session(t.Context(), w.byKey(), session))(t)
	if is.MaxLease > *lower.MaxLease || is.MaxPerAction == nil || int64(*is.MaxPerAction) > *lower.PerAction.Value {
		t.Errorf("%s leases for %s and spends %v at once", what, is.MaxLease, is.MaxPerAction)
	}
}

// A child that comes while its parent's limits are lowered gets no higher ones: neither one that was created since they were read, nor one
// that is on its way, nor one whose higher limits were granted before.
func TestNoChildEscapesLimitsThatAreLowered(t *testing.T) {
	onTenantOf(t, Config{}, looseLimits, func(t *testing.T, s *Store, w tenant) {
		raise := NewLimits{MaxLease: new(time.Minute), PerAction: LimitChange{true, new(int64(100))}}
		narrow := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 10,
			Lifetime: 10 * time.Minute, MaxPerAction: new(money.MicroUSD(1))}))(t)
		act, at := must2(s.sessionToChange(t.Context(), w.byKey(), w.session.ID, lower))(t)
		since := w.looseChild(t, s, w.session)
		below := w.looseChild(t, s, since)
		onItsWay, n := NewID(w.agent.ID), w.loose(w.session)
		part := must(readSetAside(must(s.setAside(t.Context(), setAsidePart, act, onItsWay, n))(t), nil))(t)
		before := must(s.readLimits(t.Context(), act.Flow, narrow.ID))(t)
		granted := must(s.grantAbove(t.Context(), act, before, raise))(t)

		r := must(s.changeLimits(t.Context(), act, at, lower))(t)
		must(s.afterChange(t.Context(), act, w.session.ID, lower, r))(t)

		w.wantLowered(t, s, "a child since", since.ID)
		w.wantLowered(t, s, "a grandchild", below.ID)
		wantError(t, "a creation that began before", errOf(s.createOfPart(t.Context(), act, n, part)), kernel.ErrGivenUp)
		wantError(t, "what was granted before", errOf(s.changeWithin(t.Context(), act, narrow.ID, raise, granted)), kernel.ErrStale)
		wantError(t, "what was not granted", errOf(s.changeWithin(t.Context(), act, narrow.ID, raise, "")), kernel.ErrStale)
		var limit *LimitError
		if _, err := s.ChangeLimits(t.Context(), w.key, narrow.ID, raise); !errors.As(err, &limit) || limit.Limit != "max_lease_seconds" {
			t.Errorf("more than the parent has: %v", err)
		}
	})
}

// Lower limits that broke off midway are not acknowledged, and hold everywhere once the request is repeated.
func TestLowerLimitsThatBreakOffAreCompletedByARepetition(t *testing.T) {
	onTenantOf(t, Config{}, looseLimits, func(t *testing.T, s *Store, w tenant) {
		child := w.looseChild(t, s, w.session)
		below := w.looseChild(t, s, child)
		key, redis := s.keys.Session(w.agent.ID, below.ID), peek(t, s)
		away := s.keys.Session(w.agent.ID, NewID(w.agent.ID))
		must(redis.Rename(t.Context(), key, away).Result())(t)
		must(redis.Set(t.Context(), key, "no hash", 0).Result())(t)
		wantError(t, "midway", errOf(s.ChangeLimits(t.Context(), w.key, w.session.ID, lower)), ErrOutcomeUnknown)
		must(redis.Rename(t.Context(), away, key).Result())(t)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, lower))(t)
		w.wantLowered(t, s, "the child", child.ID)
		w.wantLowered(t, s, "the grandchild", below.ID)
	})
}

// However creations, higher limits of children and lower ones of the root overlap, once all are done nothing below the root has more.
func TestManyChildrenThatComeWhileLimitsAreLoweredObeyThem(t *testing.T) {
	onTenantOf(t, Config{}, looseLimits, func(t *testing.T, s *Store, w tenant) {
		var group sync.WaitGroup
		var sessions [8][]Session
		begin := make(chan struct{})
		for i := range sessions {
			above := w.looseChild(t, s, w.session)
			sessions[i] = []Session{above}
			group.Go(func() {
				<-begin
				for range 5 {
					n := w.loose(above)
					n.MaxActions, n.MaxValue = 1, 1
					if created, err := s.CreateChildSession(t.Context(), w.byKey(), n); err == nil {
						sessions[i] = append(sessions[i], created)
					}
					_, _ = s.ChangeLimits(t.Context(), w.key, above.ID, NewLimits{MaxLease: new(time.Minute), PerAction: LimitChange{true, new(int64(100))}})
				}
			})
		}
		close(begin)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, lower))(t)
		group.Wait()
		for _, is := range slices.Concat(sessions[:]...) {
			w.wantLowered(t, s, "a session", is.ID)
		}
	})
}

// Where the parent enforces again, no child goes on observing, however the requests overlap.
func TestNoRequestToObserveOvertakesAParentThatEnforcesAgain(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 100, MaxValue: 100, Observes: true}, func(t *testing.T, s *Store, w tenant) {
		observe := NewLimits{Observes: new(true)}
		child := w.child(t, s, w.session.ID, 20, 60)
		must(s.ChangeLimits(t.Context(), w.key, child.ID, observe))(t)
		below := w.child(t, s, child.ID, 5, 50)
		act := ownActor(w.key.Organization, below.Agent)
		at := must(s.readLimits(t.Context(), act.Flow, below.ID))(t)
		granted := must(s.grantAbove(t.Context(), act, at, observe))(t) // a request to observe stops here
		lost := NewID(w.agent.ID)                                       // and so does a creation
		n := NewSession{Agent: w.agent.ID, Parent: child.ID, MaxActions: 1, Lifetime: time.Second, Observes: true}
		part := must(readSetAside(must(s.setAside(t.Context(), setAsidePart, ownActor(w.key.Organization, child.Agent), lost, n))(t), nil))(t)

		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Observes: new(false)}))(t)
		wantError(t, "what was granted before", errOf(s.changeWithin(t.Context(), act, below.ID, observe, granted)), kernel.ErrStale)
		created := errOf(s.createOfPart(t.Context(), ownActor(w.key.Organization, child.Agent), n, part))
		wantError(t, "a creation that began before", created, kernel.ErrGivenUp)
		wantError(t, "its session", errOf(s.Session(t.Context(), w.byKey(), lost)), ErrUnknownSession)
	})
}
