package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
)

// child creates a child of a session for a new agent, by API key.
func (w tenant) child(t *testing.T, s *Store, parent uuid.UUID, actions int64, value money.MicroUSD) Session {
	t.Helper()
	return must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{
		Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: parent, MaxActions: actions, MaxValue: value, Lifetime: 10 * time.Minute}))(t)
}

// endOne ends a session because one above it has ended.
func (s *Store) endOne(ctx context.Context, organization uuid.UUID, p place) error {
	return s.endChild(ctx, ownActor(organization, p.agent), p.session)
}

// end ends a session. It ends it again where the first end may have run out of the time to settle, as on a busy machine.
func (w tenant) end(t *testing.T, s *Store, id uuid.UUID) {
	t.Helper()
	for {
		began := time.Now()
		must(s.EndSession(t.Context(), w.byKey(), id))(t)
		if time.Since(began) < settleTime {
			return
		}
	}
}

// wantUsed checks a session's own usage and what it has delegated.
func (w tenant) wantUsed(t *testing.T, s *Store, session uuid.UUID, actions int64, used money.MicroUSD, delegated Delegated) {
	t.Helper()
	is := must(s.Session(t.Context(), w.byKey(), session))(t)
	if is.ActionCount != actions || is.ValueUsed != used || is.delegated() != delegated {
		t.Errorf("it has %d actions, %d used and %+v delegated; want %d, %d and %+v", is.ActionCount, is.ValueUsed,
			is.delegated(), actions, used, delegated)
	}
}

func TestASessionHasAtMost1000OpenChildren(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 100, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		looks := make([]redis.Z, 999)
		for i := range looks {
			id := NewRootID()
			looks[i] = redis.Z{Score: 9e15, Member: string(id[:])}
		}
		must(0, s.client.Redis().ZAdd(t.Context(), s.keys.Looks(w.session.ID, w.session.ID), looks...).Err())(t)
		w.child(t, s, w.session.ID, 1, 0)
		_, err := s.CreateChildSession(t.Context(), w.byKey(), NewSession{
			Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 1, Lifetime: 10 * time.Minute})
		var refused *ParentError
		if !errors.As(err, &refused) || refused.Limit != "max_open_children" || refused.Parent != w.session.ID {
			t.Errorf("the 1,001st child: %v", err)
		}
	})
}

// What a crash leaves behind comes back to the next request that needs it.
func TestWhatACrashSetAsideComesBackToTheRequestThatNeedsIt(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: 100 * 24 * time.Hour})
		act, lost := ownActor(w.key.Organization, w.agent.ID), NewID(w.agent.ID)
		n := NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 40, Lifetime: time.Hour}
		r := must(s.setAside(t.Context(), setAsidePart, act, lost, n))(t) // and no session is created
		spent := w.child(t, s, w.session.ID, 10, 60)
		must(s.Charge(t.Context(), w.byKey(), spent.ID, Charge{Count: 1, Value: 25}))(t)
		mustDo(t, s.endOne(t.Context(), w.key.Organization, place{spent.ID, spent.Agent})) // and it is not settled
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{20, 100})
		_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 76})
		var limit *LimitError
		if !errors.As(err, &limit) {
			t.Errorf("before anything may come back: %v", err)
		}
		step(40 * 24 * time.Hour)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 75}))(t)
		w.wantUsed(t, s, w.session.ID, 2, 100, Delegated{})
		part := must(readSetAside(r, nil))(t)
		wantError(t, "a creation whose part was given back", errOf(s.createOfPart(t.Context(), act, n, part)), ErrUnavailable)
		w.wantUsed(t, s, w.session.ID, 2, 100, Delegated{})
	})
}

func TestATreeIsReadNearestFirst(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 100, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		first, second := w.child(t, s, w.session.ID, 10, 10), w.child(t, s, w.session.ID, 20, 20)
		below := w.child(t, s, second.ID, 5, 5)
		must(s.Charge(t.Context(), w.byKey(), first.ID, Charge{Count: 1, Value: 3}))(t)
		must(s.EndSession(t.Context(), w.byKey(), first.ID))(t)
		grant := w.exchange(t, s)
		for name, caller := range map[string]Caller{"key": w.byKey(), "its agent": byToken(grant)} {
			tree := must(s.Tree(t.Context(), caller, w.session.ID))(t)
			if tree.ID != w.session.ID || tree.ValueUsed != 3 || len(tree.Children) != 2 || tree.Truncated {
				t.Fatalf("by %s: %+v", name, tree)
			}
			newest, oldest := tree.Children[0], tree.Children[1]
			if newest.ID != second.ID || newest.Parent != w.session.ID || len(newest.Children) != 1 || newest.Children[0].ID != below.ID {
				t.Errorf("by %s, the newest child: %+v", name, newest)
			}
			if oldest.ID != first.ID || oldest.Status != Completed || oldest.ValueUsed != 3 {
				t.Errorf("by %s, the closed child: %+v", name, oldest)
			}
		}
		looks := make([]redis.Z, MostInTree)
		for i := range looks {
			id := NewRootID()
			looks[i] = redis.Z{Score: 9e15, Member: string(id[:])}
		}
		must(0, s.client.Redis().ZAdd(t.Context(), s.keys.Looks(w.session.ID, w.session.ID), looks...).Err())(t)
		wantEqual(t, "a tree of more than it shows is truncated", must(s.Tree(t.Context(), w.byKey(), w.session.ID))(t).Truncated, true)
	})
}
