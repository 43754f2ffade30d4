package redisstore

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// transactionLists are the ways to ask for the transactions of a tenant's agent, or of its session alone.
func (w tenant) transactionLists(g Grant, session uuid.UUID) map[string]transactionList {
	return map[string]transactionList{
		"by key, of one agent": {w.byKey(), Query{Agent: w.agent.ID, Session: session}},
		"by token":             {byToken(g), Query{Session: session}},
		"by token, of itself":  {byToken(g), Query{Agent: w.agent.ID, Session: session}},
		"by key":               {w.byKey(), Query{Session: session}},
	}
}

type transactionList struct {
	caller Caller
	q      Query
}

func TestTransactionsAreListedNewestFirstWithoutWhatMayBeLarge(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 1000})
		grant := w.exchange(t, s)
		var all, inSession []Transaction
		for i := range 6 {
			n := w.beginning(7)
			if i%3 == 2 {
				n = w.alone(7)
			}
			n.Metadata, n.Irreversible = `{"n":1}`, i == 1
			one := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
			if i == 0 {
				one = must(s.Commit(t.Context(), grant.AccessToken, one.ID, Commit{PostState: `{"n":2}`}))(t)
			}
			if i == 3 {
				one = must(s.Rollback(t.Context(), w.byKey(), one.ID, Rollback{Reason: "why"}))(t)
			}
			one.PreState, one.PostState, one.Metadata = "", "", ""
			all = append([]Transaction{one}, all...)
			if n.Session != uuid.Nil {
				inSession = append([]Transaction{one}, inSession...)
			}
		}
		for session, want := range map[uuid.UUID][]Transaction{uuid.Nil: all, w.session.ID: inSession} {
			for name, list := range w.transactionLists(grant, session) {
				for list.q.Limit = 1; list.q.Limit <= len(want)+1; list.q.Limit++ {
					if got := w.listedTransactions(t, s, list.caller, list.q); !reflect.DeepEqual(got, want) {
						t.Errorf("%s, in pages of %d: %+v, want %+v", name, list.q.Limit, got, want)
					}
				}
			}
		}
	})
}

func TestTransactionsAreFilteredByTheStatusThatFollows(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 20, MaxValue: 1000})
		grant := w.exchange(t, s)
		ended := w
		ended.session = w.newSession(t, s, time.Hour)
		want := map[Status][]uuid.UUID{}
		for range 2 {
			for _, n := range []NewTransaction{w.beginning(1), w.alone(1), ended.beginning(1)} {
				begin := func(as Status) Transaction {
					begun := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
					if n.Session == ended.session.ID && as == Pending {
						as = RolledBack
					}
					want[as] = append([]uuid.UUID{begun.ID}, want[as]...)
					return begun
				}
				begin(Pending)
				must(s.Commit(t.Context(), grant.AccessToken, begin(Committed).ID, Commit{}))(t)
				must(s.Rollback(t.Context(), w.byKey(), begin(RolledBack).ID, Rollback{}))(t)
				w.letPass(t, s, begin(Expired))
			}
		}
		must(s.EndSession(t.Context(), w.byKey(), ended.session.ID))(t)
		for name, list := range w.transactionLists(grant, uuid.Nil) {
			for _, status := range []Status{Pending, Committed, RolledBack, Expired} {
				list.q.Status = status
				for list.q.Limit = 1; list.q.Limit <= len(want[status])+1; list.q.Limit += 3 {
					var got []uuid.UUID
					for _, one := range w.listedTransactions(t, s, list.caller, list.q) {
						got = append(got, one.ID)
					}
					if !slices.Equal(got, want[status]) {
						t.Errorf("%s, %s, in pages of %d: %v, want %v", name, status, list.q.Limit, got, want[status])
					}
				}
			}
		}
	})
}

// A list reads transactions and then the ends of their sessions. What was settled between the two is listed as it was
// settled: the end, which came later, undid nothing of it.
func TestATransactionSettledDuringAListIsListedAsSettled(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		committed, undone := w.begin(t, s, grant.AccessToken, 10), w.begin(t, s, grant.AccessToken, 10)
		open, gone := w.begin(t, s, grant.AccessToken, 10), w.begin(t, s, grant.AccessToken, 10)
		stale := func(one Transaction) *Transaction { return &one }
		listed := []*Transaction{stale(committed), nil, stale(undone), stale(open), stale(gone)}
		committed = must(s.Commit(t.Context(), grant.AccessToken, committed.ID, Commit{Value: new(money.MicroUSD(7))}))(t)
		undone = must(s.Rollback(t.Context(), w.byKey(), undone.ID, Rollback{Reason: "why"}))(t)
		ended := must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		must(peek(t, s).Del(t.Context(), s.keys.Transaction(w.agent.ID, gone.ID)).Result())(t)
		if err := s.applySessionEnds(t.Context(), w.key.Organization, listed, []int{0, 2, 3, 4}, time.Now()); err != nil {
			t.Fatal(err)
		}
		open.Status, open.Held, open.RolledBack = RolledBack, 0, ended
		for i, want := range map[int]Transaction{0: committed, 2: undone, 3: open, 4: gone} {
			if got := *listed[i]; !reflect.DeepEqual(got, want) {
				t.Errorf("listed %+v, want %+v", got, want)
			}
		}
	})
}

func TestATransactionInAnInaccessibleSessionLooksUnknown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 10}), newTenant(t, s, NewSession{MaxActions: 10})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		w.begin(t, s, grant.AccessToken, 0)
		neighbour := putAgent(t, s, w.key, NewID(w.agent.ID))
		distant := putAgent(t, s, w.key, otherCell(w.agent.ID))
		wrong := Caller{Key: &APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}}
		none := NewID(w.agent.ID)
		for _, test := range []struct {
			name   string
			caller Caller
			agent  uuid.UUID
			want   error // for a session that is another's, and for one that does not exist
		}{
			{"another organization", foreign.byKey(), uuid.Nil, ErrUnknownSession},
			{"another organization, of its own agent", foreign.byKey(), foreign.agent.ID, ErrUnknownSession},
			{"another organization, of the session's agent", foreign.byKey(), w.agent.ID, ErrUnknownSession},
			{"its organization, of another agent", w.byKey(), neighbour.Agent, ErrUnknownSession},
			{"an agent of the same cell", byToken(neighbour), uuid.Nil, ErrUnknownSession},
			{"an agent of another cell", byToken(distant), uuid.Nil, ErrUnknownSession},
			{"an agent, of another", byToken(neighbour), w.agent.ID, ErrUnknownAgent},
			{"another organization's agent", byToken(foreign.exchange(t, s)), uuid.Nil, ErrUnknownSession},
			{"a revoked family", byToken(dead), uuid.Nil, ErrInvalidToken},
			{"a wrong key", wrong, uuid.Nil, ErrInvalidAPIKey},
		} {
			for what, session := range map[string]uuid.UUID{"a session": w.session.ID, "none": none, "none there": otherCell(none)} {
				page, err := s.Transactions(t.Context(), test.caller, Query{Limit: 1, Agent: test.agent, Session: session})
				wantError(t, test.name+", "+what, err, test.want)
				if len(page.Items) != 0 {
					t.Errorf("%s sees %+v", test.name, page.Items)
				}
			}
		}
		for _, agent := range []uuid.UUID{w.agent.ID, NewRootID()} {
			_, err := s.Transactions(t.Context(), foreign.byKey(), Query{Limit: 1, Agent: agent})
			wantError(t, "another organization, of an agent", err, ErrUnknownAgent)
			_, err = s.Transactions(t.Context(), byToken(distant), Query{Limit: 1, Agent: agent})
			wantError(t, "an agent, of another", err, ErrUnknownAgent)
		}
		_, err := s.Transactions(t.Context(), byToken(dead), Query{Limit: 1})
		wantError(t, "a revoked family", err, ErrInvalidToken)
		_, err = s.Transactions(t.Context(), wrong, Query{Limit: 1})
		wantError(t, "a wrong key", err, ErrInvalidAPIKey)
		for _, caller := range []Caller{foreign.byKey(), byToken(neighbour), byToken(distant)} {
			if page := must(s.Transactions(t.Context(), caller, Query{Limit: 10}))(t); len(page.Items) != 0 {
				t.Errorf("%+v", page.Items)
			}
		}
	})
}

func TestAnIndexEntryOfAnothersTransactionShowsNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 10}), newTenant(t, s, NewSession{MaxActions: 10})
		theirs := foreign.begin(t, s, foreign.exchange(t, s).AccessToken, 0)
		addEntries(t, s, s.keys.OrganizationTransactions(w.key.Organization), theirs.ID)
		addEntries(t, s, s.keys.AgentTransactions(w.agent.ID), theirs.ID)
		for name, list := range w.transactionLists(w.exchange(t, s), uuid.Nil) {
			list.q.Limit = 10
			if all := w.listedTransactions(t, s, list.caller, list.q); len(all) != 0 {
				t.Errorf("%s: %+v", name, all)
			}
		}
	})
}

func TestARefusedBeginLeavesNoIndexEntry(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		token := w.exchange(t, s).AccessToken
		begun := w.begin(t, s, token, 0)
		for range 3 {
			if _, err := s.Begin(t.Context(), token, w.beginning(0)); err == nil {
				t.Error("a second action is begun")
			}
		}
		index := s.keys.OrganizationTransactions(w.key.Organization)
		if ids := indexed(t, s, index); !slices.Equal(ids, []uuid.UUID{begun.ID}) {
			t.Errorf("%s holds %v, want %s", index, ids, begun.ID)
		}
	})
}

func TestReadersDropEntriesOfTransactionsThatAreGone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		begun := w.begin(t, s, grant.AccessToken, 0)
		late := s.keys.OrganizationTransactions(w.key.Organization)
		for index, q := range map[string]Query{
			late:                                 {Limit: 10},
			s.keys.AgentTransactions(w.agent.ID): {Limit: 10, Agent: w.agent.ID},
			s.keys.SessionTransactions(w.agent.ID, begun.Session): {Limit: 10, Session: begun.Session},
		} {
			read := func(want ...uuid.UUID) {
				t.Helper()
				if all := w.listedTransactions(t, s, w.byKey(), q); len(all) != 1 {
					t.Errorf("%s: %+v", index, all)
				}
				wantIndexed(t, s, index, want...)
			}
			gone := idOfAge(kernel.CellOf(w.agent.ID), 2*kernel.CreationTime)
			addEntries(t, s, index, gone)
			if index == late { // which is written before its objects
				read(gone, begun.ID)
				w.letSuspicionPass(t, s, kernel.CreationTime+time.Minute)
			}
			read(begun.ID)
		}
	})
}

// A list that cannot be read whole is not shown in part, and no entry passes for dangling.
func TestAListOfTransactionsWhoseObjectsAreOutOfReachIsUnavailable(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		begun := w.begin(t, s, grant.AccessToken, 0)
		for name, key := range map[string]string{
			"the transactions": s.keys.Transaction(w.agent.ID, begun.ID), "their agents": s.keys.Agent(w.agent.ID),
			"their sessions": s.keys.Session(w.agent.ID, w.session.ID),
		} {
			wantUnchanged(t, s, name, func() {
				p.LoseReplies(key, 100)
				_, err := s.Transactions(t.Context(), w.byKey(), Query{Limit: 10})
				wantError(t, name, err, ErrUnavailable)
				if p.Requests() == 0 {
					t.Errorf("%s: no reply was lost", name)
				}
				p.LoseReplies("", 0)
			})
		}
	})
}

// The entry is written before the transaction: whatever is lost on the way, nothing is begun that no list shows.
func TestALostIndexEntryOfATransactionLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		p.LoseReplies(s.keys.OrganizationTransactions(w.key.Organization), 100)
		_, err := s.Begin(t.Context(), grant.AccessToken, w.beginning(0))
		wantError(t, "Begin", err, ErrUnavailable)
		if p.Requests() == 0 { // more than once does no harm: the same entry is written
			t.Error("no reply was lost")
		}
		p.LoseReplies("", 0)
		w.wantUsage(t, s, w.session.Usage)
		if all := w.listedTransactions(t, s, byToken(grant), Query{Limit: 10}); len(all) != 0 {
			t.Errorf("%+v", all)
		}
	})
}

func TestListsOfTransactionsOfNothingAreEmpty(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		lists := w.transactionLists(w.exchange(t, s), uuid.Nil)
		maps.Copy(lists, map[string]transactionList{"of its session": {w.byKey(), Query{Session: w.session.ID, Status: Pending}}})
		for name, list := range lists {
			list.q.Limit = 1
			if page := must(s.Transactions(t.Context(), list.caller, list.q))(t); len(page.Items) != 0 || page.Next != uuid.Nil {
				t.Errorf("%s: %+v", name, page)
			}
		}
	})
}

func TestADamagedTransactionIsAnErrorAndNeverShown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, field := range []string{"ty", "b", "x", "st"} {
			w := newTenant(t, s, NewSession{MaxActions: 10})
			begun := w.begin(t, s, w.exchange(t, s).AccessToken, 0)
			must(peek(t, s).HDel(t.Context(), s.keys.Transaction(w.agent.ID, begun.ID), field).Result())(t)
			_, err := s.Transaction(t.Context(), w.byKey(), begun.ID)
			wantError(t, "Transaction without "+field, err, errReply)
			_, err = s.Transactions(t.Context(), w.byKey(), Query{Limit: 1})
			wantError(t, "Transactions without "+field, err, errReply)
		}
	})
}
