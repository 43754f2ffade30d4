package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// summaryOf is what a list shows of a session.
func summaryOf(v Session) SessionSummary {
	return SessionSummary{ID: v.ID, Agent: v.Agent, Status: v.Status, ActionCount: v.ActionCount, MaxActions: v.MaxActions,
		ValueUsed: v.ValueUsed, MaxValue: v.MaxValue, Expires: v.Expires}
}

func TestSessionsAreListedNewestFirst(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1, Scopes: []string{"read"}, Metadata: `{"n":1}`}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		want := []SessionSummary{summaryOf(w.session)}
		for range 4 {
			want = append([]SessionSummary{summaryOf(w.newSession(t, s, time.Hour))}, want...)
		}
		must(s.Charge(t.Context(), w.byKey(), want[2].ID, Charge{Count: 3, Value: 250_000}))(t)
		want[2].ActionCount, want[2].ValueUsed = 3, 250_000
		for name, list := range w.lists(grant) {
			page := must(s.Sessions(t.Context(), list.caller, Query{Limit: 200, Agent: list.agent}))(t)
			wantEqual(t, name, page, Page[SessionSummary]{Items: want})
		}
	})
}

func TestPagesHoldEverySessionOnceWhileNewOnesAreCreated(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		for _, agent := range []uuid.UUID{uuid.Nil, w.agent.ID} {
			want, _ := listed(t, s, w.byKey(), Query{Limit: 200, Agent: agent}, nil)
			for range 3 {
				want = append([]uuid.UUID{w.newSession(t, s, time.Hour).ID}, want...)
			}
			ids, _ := listed(t, s, w.byKey(), Query{Limit: 2, Agent: agent}, func() { w.newSession(t, s, time.Hour) })
			wantEqual(t, "the pages", ids, want)
		}
	})
}

func TestSessionsAreFilteredByStatus(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1, Lifetime: time.Millisecond}, func(t *testing.T, s *Store, w tenant) {
		w.waitUntil(t, s, Expired)
		grant := w.exchange(t, s)
		want := map[Status][]uuid.UUID{Expired: {w.session.ID}, "": {w.session.ID}}
		for i := range 6 {
			session, status := w.newSession(t, s, time.Hour), Active
			if i%3 == 0 {
				must(s.EndSession(t.Context(), w.byKey(), session.ID))(t)
				status = Completed
			}
			want[status] = append([]uuid.UUID{session.ID}, want[status]...)
			want[""] = append([]uuid.UUID{session.ID}, want[""]...)
		}
		statuses := []Status{"", Active, Completed, Expired, Revoked}
		for _, status := range statuses {
			w.wantListed(t, s, w.lists(grant), status, want[status])
		}

		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		want[Active], want[Revoked] = nil, want[Active]
		byKey := w.lists(grant)
		maps.DeleteFunc(byKey, func(_ string, l list) bool { return l.caller.Token != nil })
		for _, status := range statuses {
			w.wantListed(t, s, byKey, status, want[status])
		}
	})
}

func TestATokenListsItsOwnAgentsSessionsAlone(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		second := newAgents(t, s, w.key, 1)[0]
		other := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: second.ID, MaxActions: 1, Lifetime: time.Hour}))(t)
		grants := map[uuid.UUID]Grant{
			w.session.ID: w.exchange(t, s),
			other.ID:     must(s.ExchangeSecret(t.Context(), second.ID, [32]byte{2}, GrantRequest{}))(t),
		}
		for own, grant := range grants {
			for _, q := range []Query{{Limit: 10}, {Limit: 10, Agent: grant.Agent}, {Limit: 10, Status: Active}} {
				ids, _ := listed(t, s, byToken(grant), q, nil)
				wantEqual(t, fmt.Sprintf("what a token lists by %+v", q), ids, []uuid.UUID{own})
			}
			ids, _ := listed(t, s, w.byKey(), Query{Limit: 10, Agent: grant.Agent}, nil)
			wantEqual(t, "what the organization lists of one agent", ids, []uuid.UUID{own})
		}
		ids, _ := listed(t, s, w.byKey(), Query{Limit: 10}, nil)
		wantEqual(t, "what the organization lists", ids, []uuid.UUID{other.ID, w.session.ID})
	})
}

func TestAnEntryOfAnotherOrganizationsSessionShowsNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, NewSession{MaxActions: 1})
		o := w.key.Organization
		addEntries(t, s, s.keys.OrganizationClosed(o), foreign.session.ID)
		addEntries(t, s, s.keys.OrganizationOpen(o), foreign.session.ID)
		addEntries(t, s, s.keys.OrganizationAgents(o), foreign.agent.ID)
		for _, status := range []Status{"", Active} {
			ids, _ := listed(t, s, w.byKey(), Query{Limit: 10, Status: status}, nil)
			wantEqual(t, "the sessions", ids, []uuid.UUID{w.session.ID})
		}
		wantEqual(t, "the agents", must(s.Agents(t.Context(), w.key, Query{Limit: 10}))(t).Items, []Agent{w.agent})
	})
}

// Even a wrong guess of the agent costs one read more, and only once.
func TestAPageReadsItsIndexAndItsAgentsOnce(t *testing.T) {
	t.Parallel()
	s, info := withOwnRedis(t, Config{UsageEvery: time.Hour}) // no other script runs
	w := newTenant(t, s, NewSession{MaxActions: 1})
	for range 4 {
		w.newSession(t, s, time.Hour)
	}
	loadScripts(t, s)
	wantRead := func(limit, agents int) {
		t.Helper()
		before := redistest.CommandCounts(t, info)
		must(s.Sessions(t.Context(), w.byKey(), Query{Limit: limit}))(t)
		want := map[string]int{
			"evalsha": 1, "time": 1, "zrevrangebylex": 2, // of the open ones and of the closed
			"hmget": 1 + min(limit+1, 5) + agents, // the organization, the sessions and their agent
		}
		wantEqual(t, fmt.Sprintf("a page of %d", limit), redistest.CommandsRun(t, info, before), want)
	}
	for limit := 1; limit <= 6; limit++ {
		wantRead(limit, 1)
	}
	s.core.Owners.Note(w.key.Organization, []uuid.UUID{NewID(w.agent.ID)})
	for _, agents := range []int{2, 1} {
		wantRead(1, agents)
	}
}

// What a store remembers of a cell is a guess: the agent may be another of that cell, another organization's, or gone.
func TestAListShowsTheRightAgentsWhateverWasRemembered(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, NewSession{MaxActions: 1})
		want := []SessionSummary{summaryOf(w.newSession(t, s, time.Hour)), summaryOf(w.session)}
		o := w.key.Organization
		for name, remembered := range map[string]uuid.UUID{
			"nothing": uuid.Nil, "itself": w.agent.ID, "another of its cell": NewID(w.agent.ID), "another organization's": foreign.agent.ID,
		} {
			s.core.Owners.Met.Purge()
			if remembered != uuid.Nil {
				s.core.Owners.Met.Add(kernel.OwnersCell{Organization: o, Cell: kernel.CellOf(w.agent.ID)}, remembered)
			}
			for range 2 {
				wantEqual(t, name, must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t).Items, want)
			}
			wantEqual(t, name+": what it remembers then", s.core.Owners.Likely(o, []uuid.UUID{w.session.ID}), []uuid.UUID{w.agent.ID})
		}
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		for _, v := range must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10}))(t).Items {
			wantEqual(t, "the status of a revoked agent", v.Status, Revoked)
		}
	})
}

// letSuspicionPass moves the time of the first sight of entries without an object into the past.
func (w tenant) letSuspicionPass(t *testing.T, s *Store, by time.Duration) {
	t.Helper()
	o := w.key.Organization
	for _, key := range []string{s.keys.SuspectAgents(o), s.keys.SuspectSessions(o), s.keys.SuspectTransactions(o)} {
		for _, entry := range must(peek(t, s).ZRange(t.Context(), key, 0, -1).Result())(t) {
			must(peek(t, s).ZIncrBy(t.Context(), key, -float64(by.Milliseconds()), entry).Result())(t)
		}
	}
}

// The time in an id is by the clock of who drew it, so it does not count: an entry is dropped when it was without its object
// for long enough by Redis's clock.
func TestReadersDropEntriesThatHaveLongBeenWithoutTheirObject(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		o, cell := w.key.Organization, kernel.CellOf(w.agent.ID)
		sessions := func(status Status) func() int {
			return func() int {
				return len(must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10, Status: status}))(t).Items)
			}
		}
		for _, list := range []struct {
			index string
			real  uuid.UUID
			read  func() int
		}{
			{s.keys.OrganizationOpen(o), w.session.ID, sessions("")},
			{s.keys.OrganizationOpen(o), w.session.ID, sessions(Active)},
			{s.keys.OrganizationAgents(o), w.agent.ID, func() int { return len(must(s.Agents(t.Context(), w.key, Query{Limit: 10}))(t).Items) }},
		} {
			read := func(want ...uuid.UUID) {
				t.Helper()
				wantEqual(t, list.index, list.read(), 1)
				wantIndexed(t, s, list.index, want...)
			}
			ancient, fresh := idOfAge(cell, 30*24*time.Hour), NewID(w.agent.ID)
			removeEntries(t, s, list.index, indexed(t, s, list.index)...)
			addEntries(t, s, list.index, ancient, list.real, fresh)
			read(ancient, list.real, fresh)
			w.letSuspicionPass(t, s, kernel.CreationTime-time.Minute)
			later := NewID(w.agent.ID)
			addEntries(t, s, list.index, later)
			read(ancient, list.real, fresh, later)
			w.letSuspicionPass(t, s, 2*time.Minute)
			read(list.real, later)
			w.letSuspicionPass(t, s, -2*kernel.CreationTime) // the clock went back: the time begins anew
			read(list.real, later)
			w.letSuspicionPass(t, s, kernel.CreationTime-time.Minute)
			read(list.real, later)
			w.letSuspicionPass(t, s, 2*time.Minute)
			read(list.real)
		}
	})
}

// The indexes in an agent's cell are written with their objects, in one script.
func TestReadersDropDeadEntriesOfAnAgentsIndexAtOnce(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		index := s.keys.AgentSessions(w.agent.ID)
		addEntries(t, s, index, idOfAge(kernel.CellOf(w.agent.ID), time.Hour), NewID(w.agent.ID))
		listed(t, s, byToken(w.exchange(t, s)), Query{Limit: 10}, nil)
		wantIndexed(t, s, index, w.session.ID)
	})
}

func TestReadersOfActiveSessionsMoveThoseThatAreOver(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1, Lifetime: time.Millisecond}, func(t *testing.T, s *Store, w tenant) {
		w.waitUntil(t, s, Expired)
		ended, active := w.newSession(t, s, time.Hour), w.newSession(t, s, time.Hour)
		must(s.EndSession(t.Context(), w.byKey(), ended.ID))(t)
		o := w.key.Organization
		listed(t, s, w.byKey(), Query{Limit: 10}, nil)
		listed(t, s, w.byKey(), Query{Limit: 10, Status: Completed}, nil)
		if open := indexed(t, s, s.keys.OrganizationOpen(o)); !slices.Contains(open, active.ID) {
			t.Errorf("other lists took it out of the open ones: %v", open)
		}
		listed(t, s, w.byKey(), Query{Limit: 10, Status: Active}, nil)
		wantIndexed(t, s, s.keys.OrganizationOpen(o), active.ID)
		wantIndexed(t, s, s.keys.OrganizationClosed(o), w.session.ID, ended.ID)
		wantIndexed(t, s, s.keys.AgentSessions(w.agent.ID), w.session.ID, ended.ID, active.ID)
	})
}

// One call reads about ScanLimit entries, however few match.
func TestAFilterThatMatchesLittleGivesAShortPageAndANext(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		const limit, entries = 50, 1200
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		ids := make([]uuid.UUID, entries)
		for i := range ids {
			ids[i] = NewID(w.agent.ID) // there are no such sessions
		}
		o := w.key.Organization
		add := func() { // for readers drop them
			addEntries(t, s, s.keys.OrganizationClosed(o), ids...)
			addEntries(t, s, s.keys.AgentSessions(w.agent.ID), ids...)
		}
		for name, list := range w.lists(w.exchange(t, s)) {
			q := Query{Limit: limit, Agent: list.agent, Status: Completed}
			add()
			page := must(s.Sessions(t.Context(), list.caller, q))(t)
			if len(page.Items) != 0 {
				t.Fatalf("%s: %+v", name, page.Items)
			}
			if looked := entries - slices.Index(ids, page.Next); looked < kernel.ScanLimit || looked > kernel.ScanLimit+limit {
				t.Errorf("%s: the first page looked at %d entries", name, looked)
			}
			add()
			found, pages := listed(t, s, list.caller, q, nil)
			wantEqual(t, name, found, []uuid.UUID{w.session.ID})
			wantEqual(t, name+": pages", pages, 2)
		}
	})
}

// A list that cannot be read whole is not shown in part, and no entry passes for dangling.
func TestAListWhoseObjectsAreOutOfReachIsUnavailable(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		old := idOfAge(kernel.CellOf(w.agent.ID), 2*kernel.CreationTime)
		addEntries(t, s, s.keys.OrganizationOpen(w.key.Organization), old)
		addEntries(t, s, s.keys.OrganizationAgents(w.key.Organization), old)
		unchanged := w.unchanged(t, s)
		sessions := func() error { return errOf(s.Sessions(t.Context(), w.byKey(), Query{Limit: 10})) }
		for _, test := range []struct {
			name string
			lost string // replies to requests that hold this
			read func() error
		}{
			{"sessions", s.keys.Session(w.session.ID, w.session.ID), sessions},
			{"the agents of the sessions", s.keys.Agent(w.agent.ID), sessions},
			{"agents", s.keys.Agent(w.agent.ID), func() error { return errOf(s.Agents(t.Context(), w.key, Query{Limit: 10})) }},
			{"one agent", s.keys.Agent(w.agent.ID), func() error { return errOf(s.Agent(t.Context(), w.key, w.agent.ID)) }},
			{"whose session it is", s.keys.Session(w.session.ID, w.session.ID), func() error {
				return errOf(s.Session(t.Context(), w.byKey(), w.session.ID))
			}},
			{"indexes that are pruned", s.keys.Session(w.session.ID, w.session.ID), func() error {
				s.pruneIndexes(t.Context(), w.key.Organization, w.agent.ID)
				return ErrUnavailable
			}},
		} {
			wantLost(t, test.name, p, test.lost, test.read, ErrUnavailable)
			unchanged()
		}
	})
}

func TestADamagedAgentIsAnErrorAndNeverShown(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		mustDo(t, peek(t, s).HDel(t.Context(), s.keys.Agent(w.agent.ID), "scopes").Err())
		wantError(t, "Session", errOf(s.Session(t.Context(), w.byKey(), w.session.ID)), errReply)
		wantError(t, "Sessions", errOf(s.Sessions(t.Context(), w.byKey(), Query{Limit: 1})), errReply)
		wantError(t, "Agent", errOf(s.Agent(t.Context(), w.key, w.agent.ID)), errReply)
	})
}

// The first list reads the agent after the session, and the second reads both at once.
func TestADamagedSessionIsAnErrorInEveryList(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, test := range []struct{ field, value string }{
			{"n", ""}, {"ma", ""}, {"v", ""}, {"mv", ""}, {"x", ""}, {"a", "short"}, {"a", "longer than an id"}, {"n", "-1"}, {"v", "x"},
			{"e", "x"}, {"gb", "x"}, {"gb", "1 2"}, {"lv", "x"}, {"lv", "-1"}, {"x", "253402300800000"},
		} {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			key := s.keys.Session(w.agent.ID, w.session.ID)
			mustDo(t, peek(t, s).HDel(t.Context(), key, test.field).Err())
			if test.value != "" {
				must(peek(t, s).HSet(t.Context(), key, test.field, test.value).Result())(t)
			}
			what := test.field + " = " + strconv.Quote(test.value)
			if what == `x = ""` || what == `mv = ""` {
				wantError(t, "a session with "+what, errOf(s.Session(t.Context(), w.byKey(), w.session.ID)), errReply)
			}
			for name, list := range w.lists(w.exchange(t, s)) {
				for range 2 {
					_, err := s.Sessions(t.Context(), list.caller, Query{Limit: 1, Agent: list.agent})
					wantError(t, name+" with "+what, err, errReply)
				}
			}
		}
	})
}

// list is one way to ask for the sessions of a tenant's agent.
type list struct {
	caller Caller
	agent  uuid.UUID
}

func (w tenant) lists(grant Grant) map[string]list {
	return map[string]list{
		"by key":               {w.byKey(), uuid.Nil},
		"by key, of one agent": {w.byKey(), w.agent.ID},
		"by token":             {byToken(grant), uuid.Nil},
		"by token, of itself":  {byToken(grant), w.agent.ID},
	}
}

// wantListed checks which sessions lists have, and that a page is short only where what a filter leaves out comes last.
func (w tenant) wantListed(t *testing.T, s *Store, lists map[string]list, status Status, want []uuid.UUID) {
	t.Helper()
	for name, list := range lists {
		for limit := 1; limit <= len(want)+1; limit++ {
			ids, pages := listed(t, s, list.caller, Query{Limit: limit, Agent: list.agent, Status: status}, nil)
			if more := pages - max(1, (len(want)+limit-1)/limit); !slices.Equal(ids, want) || more < 0 || more > 1 || status == "" && more > 0 {
				t.Errorf("%s, %s, in %d pages of %d: %v, want %v", name, status, pages, limit, ids, want)
			}
		}
	}
}

// followed follows a query to its last page, and returns all items in the order of the pages. Between any two pages
// something may happen.
func followed[T any](t *testing.T, q Query, read func(Query) (Page[T], error), between func()) (all []T, pages int) {
	t.Helper()
	for pages = 1; pages <= 1000; pages++ {
		page := must(read(q))(t)
		if len(page.Items) > q.Limit {
			t.Fatalf("%d items on a page of %d", len(page.Items), q.Limit)
		}
		all = append(all, page.Items...)
		if q.Before = page.Next; q.Before == uuid.Nil {
			return all, pages
		}
		if between != nil {
			between()
		}
	}
	t.Fatal("the pages do not end")
	return nil, 0
}

// listed returns the ids of all sessions that a query lists, and on how many pages.
func listed(t *testing.T, s *Store, c Caller, q Query, between func()) (ids []uuid.UUID, pages int) {
	t.Helper()
	all, pages := followed(t, q, func(q Query) (Page[SessionSummary], error) { return s.Sessions(t.Context(), c, q) }, between)
	for _, session := range all {
		ids = append(ids, session.ID)
	}
	return ids, pages
}

// wantIndexed checks which ids an index holds, oldest first.
func wantIndexed(t *testing.T, s *Store, index string, want ...uuid.UUID) {
	t.Helper()
	if ids := indexed(t, s, index); !slices.Equal(ids, want) {
		t.Errorf("%s holds %v, want %v", index, ids, want)
	}
}

// addEntries writes ids into an index, past the store.
func addEntries(t *testing.T, s *Store, index string, ids ...uuid.UUID) {
	t.Helper()
	entries := make([]redis.Z, len(ids))
	for i, id := range ids {
		entries[i].Member = membersIn(s, index).Of(id)
	}
	mustDo(t, peek(t, s).ZAdd(context.Background(), index, entries...).Err())
}

// removeEntries takes ids out of an index, past the store.
func removeEntries(t *testing.T, s *Store, index string, ids ...uuid.UUID) {
	t.Helper()
	for _, id := range ids {
		mustDo(t, peek(t, s).ZRem(context.Background(), index, membersIn(s, index).Of(id)).Err())
	}
}
