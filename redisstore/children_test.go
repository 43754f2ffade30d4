package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// child creates a child of a session for a new agent, by API key.
func (w tenant) child(t *testing.T, s *Store, parent uuid.UUID, actions int64, value money.MicroUSD) Session {
	t.Helper()
	return must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{
		Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: parent, MaxActions: actions, MaxValue: value, Lifetime: time.Minute}))(t)
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

func TestAChildTakesAPartOfItsParentAndGivesTheRestBack(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 10}))(t)
		child := w.child(t, s, w.session.ID, 4, 50)
		if child.Parent != w.session.ID || child.MaxActions != 4 || child.MaxValue != 50 || !child.Expires.Before(w.session.Expires) {
			t.Errorf("the child is %+v", child)
		}
		w.wantUsed(t, s, w.session.ID, 1, 10, Delegated{4, 50})
		_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 41})
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Limit != "max_value_usd" || limit.Usage.RemainingValue() != 40 || limit.Usage.RemainingActions() != 5 {
			t.Errorf("a charge beyond what is left: %v, %+v", err, limit)
		}
		usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 40}))(t)
		if usage.ActionCount != 2 || usage.ValueUsed != 50 || usage.RemainingValue() != 0 || usage.RemainingActions() != 4 {
			t.Errorf("the parent's usage is %+v", usage)
		}
		grandchild := w.child(t, s, child.ID, 2, 20)
		must(s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 1, Value: 7}))(t)
		must(s.Charge(t.Context(), w.byKey(), grandchild.ID, Charge{Count: 1, Value: 5}))(t)
		w.wantUsed(t, s, child.ID, 1, 7, Delegated{2, 20})
		w.end(t, s, grandchild.ID)
		w.wantUsed(t, s, child.ID, 2, 12, Delegated{})
		w.end(t, s, child.ID)
		w.wantUsed(t, s, w.session.ID, 4, 62, Delegated{})
	})
}

func TestADefaultLimitOfAChildFitsIntoWhatItsParentHasLeft(t *testing.T) {
	t.Parallel()
	small, large := NewSession{MaxActions: 4, MaxValue: 40}, NewSession{MaxActions: 1000, MaxValue: 100 * money.USD}
	for name, test := range map[string]struct {
		parent  NewSession
		spent   Charge
		asked   NewSession
		actions int64
		value   money.MicroUSD
		limit   string // that refuses it
	}{
		"all of it fits":                         {NewSession{MaxActions: 10, MaxValue: 100}, Charge{Count: 3, Value: 30}, small, 4, 40, ""},
		"what is left":                           {NewSession{MaxActions: 10, MaxValue: 100}, Charge{Count: 3, Value: 30}, large, 7, 70, ""},
		"what may be committed":                  {NewSession{MaxActions: 10, MaxValue: 100, MaxCommitted: new(money.MicroUSD(50))}, Charge{Count: 3, Value: 30}, large, 7, 20, ""},
		"a parent without value":                 {NewSession{MaxActions: 10}, Charge{Count: 3}, large, 7, 0, ""},
		"no value by default":                    {NewSession{MaxActions: 10, MaxValue: 100}, Charge{Count: 3, Value: 100}, NewSession{MaxActions: 4}, 4, 0, ""},
		"no action left":                         {NewSession{MaxActions: 3, MaxValue: 100}, Charge{Count: 3, Value: 30}, large, 0, 0, "max_actions"},
		"no value left":                          {NewSession{MaxActions: 10, MaxValue: 100}, Charge{Count: 3, Value: 100}, large, 0, 0, "max_value_usd"},
		"nothing left to commit":                 {NewSession{MaxActions: 10, MaxValue: 100, MaxCommitted: new(money.MicroUSD(30))}, Charge{Count: 3, Value: 30}, large, 0, 0, "max_committed_usd"},
		"a parent that observes, all used":       {NewSession{MaxActions: 3, MaxValue: 30, Observes: true}, Charge{Count: 3, Value: 30}, small, 4, 40, ""},
		"a parent that observes, something left": {NewSession{MaxActions: 10, MaxValue: 100, Observes: true}, Charge{Count: 3, Value: 30}, large, 7, 70, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, test.parent)
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, test.spent))(t)
				n := test.asked
				n.Agent, n.Parent, n.Lifetime, n.FitActions, n.FitValue = w.agent.ID, w.session.ID, time.Minute, true, true
				n.Idempotency = &Idempotency{Key: "one"}
				child, err := s.CreateChildSession(t.Context(), w.byKey(), n)
				var limit *LimitError
				if errors.As(err, &limit) && limit.Limit == test.limit {
					w.wantUsed(t, s, w.session.ID, test.spent.Count, test.spent.Value, Delegated{})
					return
				}
				if err != nil || test.limit != "" || child.MaxActions != test.actions || child.MaxValue != test.value {
					t.Fatalf("the child gets %d actions and %d, %v; want %d, %d, %q", child.MaxActions, child.MaxValue, err, test.actions, test.value, test.limit)
				}
				w.wantUsed(t, s, w.session.ID, test.spent.Count, test.spent.Value, Delegated{test.actions, test.value})
				n.Idempotency = &Idempotency{Key: "one"}
				if again := must(s.CreateChildSession(t.Context(), w.byKey(), n))(t); again.ID != child.ID || again.MaxActions != test.actions || again.MaxValue != test.value {
					t.Errorf("repeated, it is %+v; was %+v", again, child)
				}
			})
		})
	}
}

// The half minute in which a creation may be on its way is for sessions that do not exist.
func TestThePartOfASessionThatIsOverComesBackAtOnce(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Hour})
		must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 100,
			Lifetime: time.Second}))(t)
		step(2 * time.Second)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 100}))(t)
		must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
		for _, at := range []time.Duration{3 * time.Second, 5 * time.Second} {
			step(at)
			must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 100, Lifetime: time.Second}))(t)
		}
	})
}

func TestTheEndOfASessionEndsItsDescendants(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		var all []Session
		for range 3 {
			child := w.child(t, s, w.session.ID, 10, 10)
			grandchild := w.child(t, s, child.ID, 5, 5)
			must(s.Charge(t.Context(), w.byKey(), grandchild.ID, Charge{Count: 1, Value: 3}))(t)
			all = append(all, child, grandchild)
		}
		w.end(t, s, w.session.ID)
		for _, session := range all {
			if is := must(s.Session(t.Context(), w.byKey(), session.ID))(t); is.Status != Completed {
				t.Errorf("a descendant is %s", is.Status)
			}
		}
		w.wantUsed(t, s, w.session.ID, 3, 9, Delegated{})
	})
}

func TestARootSessionReservesItsValueInTheBudget(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		wantBudget := func(reserved, used money.MicroUSD) {
			t.Helper()
			is := must(s.Budget(t.Context(), w.key))(t)
			if is.MaxValue != 100 || is.Reserved != reserved || is.Used != used {
				t.Errorf("the budget is %+v, want %d reserved and %d used", is, reserved, used)
			}
		}
		must(s.SetBudget(t.Context(), w.key, 100, BudgetMonth))(t)
		root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 60, Lifetime: time.Minute}))(t)
		wantBudget(60, 0)
		_, err := s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 41, Lifetime: time.Minute})
		var exhausted *BudgetError
		if !errors.As(err, &exhausted) || exhausted.Remaining != 40 || !exhausted.Resets.After(time.Now()) {
			t.Errorf("a session beyond the budget: %v", err)
		}
		wantBudget(60, 0)
		must(s.ChangeLimits(t.Context(), w.key, root.ID, NewLimits{AddValue: new(money.MicroUSD(40))}))(t)
		wantBudget(100, 0)
		_, err = s.ChangeLimits(t.Context(), w.key, root.ID, NewLimits{AddValue: new(money.MicroUSD(1))})
		if !errors.As(err, &exhausted) {
			t.Errorf("a top-up beyond the budget: %v", err)
		}
		must(s.Charge(t.Context(), w.byKey(), root.ID, Charge{Count: 1, Value: 30}))(t)
		w.end(t, s, root.ID)
		wantBudget(0, 30)
	})
}

func TestATopUpOfAChildTakesFromItsParent(t *testing.T) {
	t.Parallel()
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		child := w.child(t, s, w.session.ID, 10, 10)
		changed := must(s.ChangeLimits(t.Context(), w.key, child.ID, NewLimits{AddValue: new(money.MicroUSD(20)), MaxActions: new(int64(50))}))(t)
		if changed.MaxValue != 30 || changed.MaxActions != 50 {
			t.Errorf("changed to %+v", changed)
		}
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{50, 30})
		_, err := s.ChangeLimits(t.Context(), w.key, child.ID, NewLimits{AddValue: new(money.MicroUSD(71))})
		var refused *ParentError
		if !errors.As(err, &refused) || refused.Parent != w.session.ID || refused.Limit != "max_value_usd" {
			t.Errorf("a top-up beyond the parent: %v", err)
		}
		_, err = s.ChangeLimits(t.Context(), w.key, child.ID, NewLimits{Lifetime: new(24 * time.Hour)})
		if !errors.As(err, &refused) || refused.Limit != "expires_at" {
			t.Errorf("a lifetime beyond the parent: %v", err)
		}
		must(s.ChangeLimits(t.Context(), w.key, child.ID, NewLimits{Lifetime: new(2 * time.Minute), MaxValue: new(money.MicroUSD(5))}))(t)
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{50, 30})
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Lifetime: new(time.Minute)}))(t)
		parent, is := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t), must(s.Session(t.Context(), w.byKey(), child.ID))(t)
		if is.Expires.After(parent.Expires) {
			t.Errorf("the child expires at %s, its parent at %s", is.Expires, parent.Expires)
		}
	})
}

func TestDescendantsFollowTheSuspensionOfASession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		child := w.child(t, s, w.session.ID, 50, 50)
		grandchild, other := w.child(t, s, child.ID, 10, 10), w.child(t, s, child.ID, 10, 10)
		wantCharged := func(what string, session uuid.UUID, want bool) {
			t.Helper()
			_, err := s.Charge(t.Context(), w.byKey(), session, Charge{Count: 1})
			if (err == nil) != want || err != nil && !kernel.IsSuspended(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
		must(s.SuspendSession(t.Context(), w.key, other.ID, "its own"))(t)
		must(s.SuspendSession(t.Context(), w.key, w.session.ID, "all"))(t)
		must(s.SuspendSession(t.Context(), w.key, w.session.ID, "again"))(t)
		for _, session := range []uuid.UUID{w.session.ID, child.ID, grandchild.ID, other.ID} {
			wantCharged("while the root is suspended", session, false)
		}
		must(s.ResumeSession(t.Context(), w.key, grandchild.ID, ""))(t)
		wantCharged("a resumed session below a suspended one", grandchild.ID, false)
		_, err := s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: child.ID, MaxActions: 1, Lifetime: time.Second})
		if !kernel.IsSuspended(err) {
			t.Errorf("a child of a suspended session: %v", err)
		}
		must(s.ResumeSession(t.Context(), w.key, w.session.ID, ""))(t)
		for _, session := range []uuid.UUID{w.session.ID, child.ID, grandchild.ID} {
			wantCharged("after the root is resumed", session, true)
		}
		wantCharged("suspended by itself", other.ID, false)
		must(s.ResumeSession(t.Context(), w.key, other.ID, ""))(t)
		wantCharged("resumed by itself", other.ID, true)
	})
}

func TestATreeIsBounded(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		refusal := func(parent uuid.UUID) string {
			t.Helper()
			_, err := s.CreateChildSession(t.Context(), w.byKey(), NewSession{
				Agent: w.agent.ID, Parent: parent, MaxActions: 1, Lifetime: time.Minute})
			var refused *ParentError
			if errors.As(err, &refused) && refused.Parent == parent {
				return refused.Limit
			}
			if err != nil {
				t.Error(err)
			}
			return ""
		}
		deepest := w.session.ID
		for range 7 {
			deepest = w.child(t, s, deepest, 10, 10).ID
		}
		if limit := refusal(deepest); limit != "max_depth" {
			t.Errorf("a ninth level: %q", limit)
		}
		looks := make([]redis.Z, 998)
		for i := range looks {
			id := NewRootID()
			looks[i] = redis.Z{Score: 9e15, Member: string(id[:])}
		}
		if err := s.client.Redis().ZAdd(t.Context(), s.keys.Looks(w.session.ID, w.session.ID), looks...).Err(); err != nil {
			t.Fatal(err)
		}
		if limit := refusal(w.session.ID); limit != "" {
			t.Errorf("the 1,000th child: %q", limit)
		}
		if limit := refusal(w.session.ID); limit != "max_open_children" {
			t.Errorf("the 1,001st child: %q", limit)
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
		if err := s.endOne(t.Context(), w.key.Organization, place{spent.ID, spent.Agent}); err != nil { // and it is not settled
			t.Fatal(err)
		}
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
		if _, err := s.createOfPart(t.Context(), act, n, part); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a creation whose part was given back: %v", err)
		}
		w.wantUsed(t, s, w.session.ID, 2, 100, Delegated{})
	})
}

func TestARepeatedCreationOfAChildReturnsTheFirst(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		agent := newAgents(t, s, w.key, 1)[0].ID
		create := func(value money.MicroUSD) (Session, error) {
			return s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: agent, Parent: w.session.ID, MaxActions: 1, MaxValue: value,
				Lifetime: time.Minute, Idempotency: &Idempotency{Key: "one", Fingerprint: [32]byte{byte(value)}}})
		}
		first, again := must(create(40))(t), must(create(40))(t)
		if again.ID != first.ID || !again.Expires.Equal(first.Expires) || !again.Created.Equal(first.Created) {
			t.Errorf("first %+v, again %+v", first, again)
		}
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{1, 40})
		_, err := create(41)
		wantError(t, "another request with the key", err, ErrIdempotencyKeyReused)
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{1, 40})
	})
}

// A creation that its agent's cell refuses gives its part back, and no repetition of the request creates the session after that.
func TestARefusedCreationIsNotRepeatedWithoutItsPart(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		act, agent := ownActor(w.key.Organization, w.agent.ID), newAgents(t, s, w.key, 1)[0].ID
		n := NewSession{Agent: agent, Parent: w.session.ID, MaxActions: 10, MaxValue: 40, Lifetime: time.Minute}
		part := must(readSetAside(must(s.setAside(t.Context(), setAsidePart, act, NewID(agent), n))(t), nil))(t)
		must(s.SuspendAgent(t.Context(), w.key, agent, ""))(t)
		if _, err := s.createOfPart(t.Context(), act, n, part); !kernel.IsSuspended(err) {
			t.Errorf("for a suspended agent: %v", err)
		}
		w.wantUsed(t, s, w.session.ID, 0, 0, Delegated{})
		must(s.ResumeAgent(t.Context(), w.key, agent, ""))(t)
		if _, err := s.createOfPart(t.Context(), act, n, part); !errors.Is(err, kernel.ErrGivenUp) {
			t.Errorf("repeated: %v", err)
		}
	})
}

func TestATreeIsReadNearestFirst(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
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
		stranger := newTenant(t, s, NewSession{MaxActions: 1})
		_, err := s.Tree(t.Context(), stranger.byKey(), w.session.ID)
		wantError(t, "by a stranger", err, ErrUnknownSession)
		looks := make([]redis.Z, MostInTree)
		for i := range looks {
			id := NewRootID()
			looks[i] = redis.Z{Score: 9e15, Member: string(id[:])}
		}
		if err := s.client.Redis().ZAdd(t.Context(), s.keys.Looks(w.session.ID, w.session.ID), looks...).Err(); err != nil {
			t.Fatal(err)
		}
		if tree := must(s.Tree(t.Context(), w.byKey(), w.session.ID))(t); !tree.Truncated {
			t.Error("a tree of more than it shows is whole")
		}
	})
}
