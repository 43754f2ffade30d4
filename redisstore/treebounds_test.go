package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// children creates children of a session for one agent, by API key.
func (w tenant) children(t *testing.T, s *Store, parent uuid.UUID, n NewSession, count int) []Session {
	t.Helper()
	n.Parent, n.Lifetime = parent, max(n.Lifetime, time.Minute)
	if n.Agent == uuid.Nil {
		n.Agent = w.agent.ID
	}
	created := make([]Session, count)
	err := eachOf(t.Context(), count, func(ctx context.Context, i int) error {
		var err error
		created[i], err = s.CreateChildSession(ctx, w.byKey(), n)
		return err
	})
	mustDo(t, err)
	return created
}

// However wide a tree is, one request changes few of its sessions at once, each once, and after the one above it.
func TestATreeIsChangedFewSessionsAtATime(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1_000_000, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		wide := w.children(t, s, w.session.ID, NewSession{MaxActions: 100}, stepsAtOnce+10)
		want := len(wide)
		for _, parent := range wide[:parentsAtOnce+3] {
			want += len(w.children(t, s, parent.ID, NewSession{MaxActions: 1}, 3))
		}
		var lock sync.Mutex
		running, most, changed := 0, 0, map[uuid.UUID]bool{w.session.ID: true}
		root := place{w.session.ID, w.agent.ID}
		err := descend(t.Context(), s, flow{}, []place{root}, func(_ context.Context, above, child place) (place, bool, error) {
			lock.Lock()
			if !changed[above.session] || changed[child.session] {
				t.Errorf("%s is changed, the one above it: %v, before: %v", child.session, changed[above.session], changed[child.session])
			}
			changed[child.session] = true
			running++
			most = max(most, running)
			lock.Unlock()
			time.Sleep(time.Millisecond) // so that others begin
			lock.Lock()
			defer lock.Unlock()
			running--
			return child, true, nil
		})
		if err != nil || len(changed)-1 != want {
			t.Errorf("%d descendants were changed, want %d: %v", len(changed)-1, want, err)
		}
		if most > stepsAtOnce {
			t.Errorf("%d were changed at once, want at most %d", most, stepsAtOnce)
		}
	})
}

// A session's end gives back what a crash left below it, even where no session was created.
func TestAnEndGivesBackWhatACrashLeftBelow(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		organization := w.key.Organization
		must(s.SetBudget(t.Context(), w.key, 100, BudgetMonth))(t)
		root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 60, Lifetime: time.Hour}))(t)
		child := w.children(t, s, root.ID, NewSession{MaxActions: 5, MaxValue: 50}, 1)[0]
		taken := w.children(t, s, child.ID, NewSession{MaxActions: 1, MaxValue: 10}, 1)[0]
		must(s.Charge(t.Context(), w.byKey(), taken.ID, Charge{Count: 1, Value: 7}))(t)
		act, n := ownActor(organization, w.agent.ID), NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Minute}
		for _, parent := range []Session{root, child} { // parts without a session
			n.Parent, n.MaxValue = parent.ID, 10
			must(s.setAside(t.Context(), setAsidePart, act, NewID(w.agent.ID), n))(t)
		}
		over := place{taken.ID, w.agent.ID}
		mustDo(t, s.endOne(t.Context(), organization, over)) // its usage is taken, and then the service crashes
		final := must(s.closeUsage(t.Context(), organization, over, refusesMissing))(t)
		must(0, s.takeUsage(t.Context(), organization, final.above, over, final))(t)
		open, began := s.keys.OrganizationOpen(organization), time.Now()
		w.end(t, s, root.ID)
		if time.Since(began) > closeTime { // then it may have left sessions among the open ones, for the next reader
			eventually(t, "a reader moves them", func() bool {
				must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10, Status: Active}))(t)
				return len(indexed(t, s, open)) == 1
			})
		}
		budget := must(s.Budget(t.Context(), w.key))(t)
		wantEqual(t, "what is reserved of the budget", budget.Reserved, 0)
		wantEqual(t, "what is used of the budget", budget.Used, 7)
		wantIndexed(t, s, open, w.session.ID)
		for name, id := range map[string]uuid.UUID{"root": root.ID, "child": child.ID, "grandchild": taken.ID} {
			if left := must(peek(t, s).PTTL(t.Context(), s.keys.Session(w.agent.ID, id)).Result())(t); left > 365*24*time.Hour {
				t.Errorf("the %s is kept for %s", name, left)
			}
		}
	})
}

// A session of a tree stays among the open ones until it is settled, because no reader would look at it again.
func TestAReaderMovesASessionOfATreeOnceItIsSettled(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		must(s.SetBudget(t.Context(), w.key, 100, BudgetMonth))(t)
		root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 60, Lifetime: time.Millisecond}))(t)
		list := func() { must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10, Status: Active}))(t) }
		time.Sleep(2 * time.Millisecond)
		p.LoseReplies(takeReservation.SHA(), 1)
		list()
		list()
		wantEqual(t, "what is still reserved", must(s.Budget(t.Context(), w.key))(t).Reserved, 0)
		wantIndexed(t, s, s.keys.OrganizationOpen(w.key.Organization), w.session.ID)
		if left := must(peek(t, s).PTTL(t.Context(), s.keys.Session(w.agent.ID, root.ID)).Result())(t); left > 365*24*time.Hour {
			t.Errorf("it is kept for %s", left)
		}
	})
}

func TestCreationsOfChildrenBoundUnreadIndexes(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1_000_000}, func(t *testing.T, s *Store, w tenant) {
		o := w.key.Organization
		indexes := []string{s.keys.OrganizationOpen(o), s.keys.OrganizationClosed(o), s.keys.AgentSessions(w.agent.ID)}
		w.wantBounded(t, s, indexes, func() {
			w.children(t, s, w.session.ID, NewSession{MaxActions: 1}, 1)
			w.letSuspicionPass(t, s, kernel.CreationTime+time.Minute)
		})
	})
}

// A tree is read as far as its texts fit, however much metadata its sessions have.
func TestATreeIsReadAsFarAsItsTextsFit(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1_000_000}, func(t *testing.T, s *Store, w tenant) {
		const each = 16 << 10
		fits := MostTreeText/each + 2*readAtOnce
		metadata := fmt.Sprintf(`{"x":"%s"}`, strings.Repeat("x", each-8))
		w.children(t, s, w.session.ID, NewSession{MaxActions: 1, Metadata: metadata}, fits)
		tree := must(s.Tree(t.Context(), w.byKey(), w.session.ID))(t)
		texts := 0
		for _, child := range tree.Children {
			texts += len(child.Metadata)
		}
		if !tree.Truncated || texts < MostTreeText || texts > MostTreeText+readAtOnce*each {
			t.Errorf("%d of %d children are shown, with %d bytes; left out: %v", len(tree.Children), fits, texts, tree.Truncated)
		}
	})
}

// Few trees are read at once, so that a flood of them leaves Redis to others.
func TestATreeWaitsForItsTurnToBeRead(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		leaf := w.children(t, s, w.session.ID, NewSession{MaxActions: 1}, 1)[0]
		var release func()
		for range 4 {
			release = must(s.client.Turn(t.Context(), flow{Owner: NewRootID()}))(t)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		wantError(t, "while four are read", errOf(s.Tree(ctx, w.byKey(), w.session.ID)), ErrUnavailable)
		must(s.Tree(t.Context(), w.byKey(), leaf.ID))(t) // one session is no tree
		release()
		must(s.Tree(t.Context(), w.byKey(), w.session.ID))(t)
		must(s.Tree(t.Context(), w.byKey(), w.session.ID))(t)
	})
}

// What a child takes in Redis, open and closed, is about what it is counted as: within a quarter.
func TestAChildTakesTheMemoryThatIsCountedForIt(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		const many = 300
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000_000, MaxValue: 1_000_000_000})
		all := w.children(t, s, w.session.ID, NewSession{MaxActions: 1000, MaxValue: 1_000_000}, many)
		client := peek(t, s)
		sizeOf := func(key string, of int64) int64 {
			return must(client.MemoryUsage(t.Context(), key, 0).Result())(t) / of
		}
		// MemoryUsage leaves out the entries of a record's key and of its TTL in Redis's tables, about 72 bytes.
		record := func() int64 { return sizeOf(s.keys.Session(w.agent.ID, all[0].ID), 1) + 72 }
		ofAgent := sizeOf(s.keys.AgentSessions(w.agent.ID), many+1)
		open := record() + ofAgent + sizeOf(s.keys.OrganizationOpen(w.key.Organization), many+1) +
			sizeOf(s.keys.Parts(w.session.ID, w.session.ID), many) + sizeOf(s.keys.Looks(w.session.ID, w.session.ID), many)
		for _, child := range all {
			must(s.EndSession(t.Context(), w.byKey(), child.ID))(t)
		}
		closed := record() + ofAgent + sizeOf(s.keys.OrganizationClosed(w.key.Organization), many) + sizeOf(s.keys.ClosedChildren(w.session.ID, w.session.ID), many)
		for what, bytes := range map[string]int64{"an open child": open, "a closed child": closed} {
			if counted := int64(kernel.SessionSize + kernel.ChildSize); bytes > counted*5/4 || bytes < counted*3/4 {
				t.Errorf("%s takes %d bytes, counted are %d", what, bytes, counted)
			}
		}
	})
}

// A session remembers its last 1,000 closed children, and an id that was refused for a day.
func TestWhatASessionRemembersOfItsChildrenIsBounded(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		closed, child := s.keys.ClosedChildren(w.session.ID, w.session.ID), w.children(t, s, w.session.ID, NewSession{MaxActions: 1}, 1)[0]
		entries := make([]redis.Z, 1000)
		for i := range entries {
			id := NewRootID()
			entries[i] = redis.Z{Score: float64(i), Member: string(id[:])}
		}
		must(0, peek(t, s).ZAdd(t.Context(), closed, entries...).Err())(t)
		must(s.EndSession(t.Context(), w.byKey(), child.ID))(t)
		newest := must(peek(t, s).ZRange(t.Context(), closed, 0, -1).Result())(t)
		if len(newest) != 1000 || newest[999] != string(child.ID[:]) || newest[0] != entries[1].Member {
			t.Errorf("%d closed children are remembered, the newest is %x", len(newest), newest[len(newest)-1])
		}
		act, lost := ownActor(w.key.Organization, w.agent.ID), NewID(w.agent.ID)
		n := NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 1, Lifetime: time.Minute}
		must(s.setAside(t.Context(), setAsidePart, act, lost, n))(t) // and no session is created
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		for what, key := range map[string]string{
			"a refused id": s.keys.Session(w.agent.ID, lost), "the session": s.keys.Session(w.agent.ID, w.session.ID), "its closed children": closed,
		} {
			if left := must(peek(t, s).PTTL(t.Context(), key).Result())(t); left <= 0 || left > max(refusedFor, s.config.Retention) {
				t.Errorf("%s is kept for %s", what, left)
			}
		}
		wantGone(t, s, s.keys.Parts(w.session.ID, w.session.ID), s.keys.Looks(w.session.ID, w.session.ID))
	})
}
