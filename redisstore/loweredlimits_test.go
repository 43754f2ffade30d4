package redisstore

import (
	"errors"
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
	return NewSession{Agent: w.agent.ID, Parent: parent.ID, MaxActions: 10, MaxValue: 10, Lifetime: time.Minute,
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, looseLimits)
		raise := NewLimits{MaxLease: new(time.Minute), PerAction: LimitChange{true, new(int64(100))}}
		narrow := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 10,
			Lifetime: time.Minute, MaxPerAction: new(money.MicroUSD(1))}))(t)
		act, at, err := s.sessionToChange(t.Context(), w.byKey(), w.session.ID, lower)
		if err != nil {
			t.Fatal(err)
		}
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
		if _, err := s.createOfPart(t.Context(), act, n, part); !errors.Is(err, kernel.ErrGivenUp) {
			t.Errorf("a creation that began before: %v", err)
		}
		wantError(t, "what was granted before", errOf(s.changeWithin(t.Context(), act, narrow.ID, raise, granted)), kernel.ErrStale)
		wantError(t, "what was not granted", errOf(s.changeWithin(t.Context(), act, narrow.ID, raise, "")), kernel.ErrStale)
		var limit *LimitError
		if _, err = s.ChangeLimits(t.Context(), w.key, narrow.ID, raise); !errors.As(err, &limit) || limit.Limit != "max_lease_seconds" {
			t.Errorf("more than the parent has: %v", err)
		}
	})
}

// Lower limits that broke off midway are not acknowledged, and hold everywhere once the request is repeated.
func TestLowerLimitsThatBreakOffAreCompletedByARepetition(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, looseLimits)
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, looseLimits)
		var group sync.WaitGroup
		var lock sync.Mutex
		var sessions []Session
		begin := make(chan struct{})
		for range 8 {
			above := w.looseChild(t, s, w.session)
			sessions = append(sessions, above)
			group.Go(func() {
				<-begin
				for range 5 {
					n := w.loose(above)
					n.MaxActions, n.MaxValue = 1, 1
					created, err := s.CreateChildSession(t.Context(), w.byKey(), n)
					if err == nil {
						lock.Lock()
						sessions = append(sessions, created)
						lock.Unlock()
					}
					_, _ = s.ChangeLimits(t.Context(), w.key, above.ID, NewLimits{MaxLease: new(time.Minute), PerAction: LimitChange{true, new(int64(100))}})
				}
			})
		}
		close(begin)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, lower))(t)
		group.Wait()
		for _, is := range sessions {
			w.wantLowered(t, s, "a session", is.ID)
		}
	})
}
