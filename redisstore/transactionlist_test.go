package redisstore

import (
	"fmt"
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
	onTenantOf(t, Config{}, NewSession{MaxActions: 20, MaxValue: 1000}, func(t *testing.T, s *Store, w tenant) {
		grant, ended := w.exchange(t, s), w
		ended.session = w.newSession(t, s, time.Hour)
		var ids []uuid.UUID
		for range 2 {
			for _, n := range []NewTransaction{w.beginning(1), w.alone(1), ended.beginning(1)} {
				n.Metadata = `{"n":1}`
				begin := func() Transaction {
					begun := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
					ids = append(ids, begun.ID)
					return begun
				}
				begin()
				must(s.Commit(t.Context(), grant.AccessToken, begin().ID, Commit{PostState: `{"n":2}`}))(t)
				must(s.Rollback(t.Context(), w.byKey(), begin().ID, Rollback{Reason: "why"}))(t)
				w.letPass(t, s, begin())
			}
		}
		must(s.EndSession(t.Context(), w.byKey(), ended.session.ID))(t) // which rolls back what is pending
		for session, counts := range map[uuid.UUID]map[Status]int{
			uuid.Nil:     {"": 24, Pending: 4, Committed: 6, RolledBack: 8, Expired: 6},
			w.session.ID: {"": 8, Pending: 2, Committed: 2, RolledBack: 2, Expired: 2},
		} {
			for status, count := range counts {
				var want []Transaction
				for _, id := range slices.Backward(ids) {
					one := must(s.Transaction(t.Context(), w.byKey(), id))(t)
					one.PreState, one.PostState, one.Metadata = "", "", ""
					if (session == uuid.Nil || one.Session == session) && (status == "" || one.Status == status) {
						want = append(want, one)
					}
				}
				for name, list := range w.transactionLists(grant, session) {
					list.q.Status = status
					for list.q.Limit = 1; list.q.Limit <= count+1; list.q.Limit += 1 + count/5 {
						if got := w.listedTransactions(t, s, list.caller, list.q); len(want) != count || !reflect.DeepEqual(got, want) {
							t.Errorf("%s, %q, in pages of %d: %+v, want %+v", name, status, list.q.Limit, got, want)
						}
					}
				}
			}
		}
	})
}

// A list reads transactions and then the ends of their sessions. What was settled between the two is listed as it was
// settled: the end, which came later, undid nothing of it.
func TestATransactionSettledDuringAListIsListedAsSettled(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		committed, undone := w.begin(t, s, grant.AccessToken, 10), w.begin(t, s, grant.AccessToken, 10)
		open, gone := w.begin(t, s, grant.AccessToken, 10), w.begin(t, s, grant.AccessToken, 10)
		stale := func(one Transaction) *Transaction { return &one }
		listed := []*Transaction{stale(committed), nil, stale(undone), stale(open), stale(gone)}
		committed = must(s.Commit(t.Context(), grant.AccessToken, committed.ID, Commit{Value: new(money.MicroUSD(7))}))(t)
		undone = must(s.Rollback(t.Context(), w.byKey(), undone.ID, Rollback{Reason: "why"}))(t)
		ended := must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		must(peek(t, s).Del(t.Context(), s.keys.Transaction(w.agent.ID, gone.ID)).Result())(t)
		must(0, s.applySessionEnds(t.Context(), w.key.Organization, listed, []int{0, 2, 3, 4}, time.Now()))(t)
		open.Status, open.Held, open.RolledBack = RolledBack, 0, ended
		for i, want := range map[int]Transaction{0: committed, 2: undone, 3: open, 4: gone} {
			got := *listed[i]
			got.SessionLeft = want.SessionLeft // which only a begin says
			wantEqual(t, "what is listed", got, want)
		}
	})
}

// caller_test.go asks for the transactions of another's session.
func TestTransactionsOfAnAgentAreForItAndItsOrganization(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, NewSession{MaxActions: 10})
		w.begin(t, s, w.exchange(t, s).AccessToken, 0)
		neighbour := putAgent(t, s, w.key, NewID(w.agent.ID))
		distant := putAgent(t, s, w.key, otherCell(w.agent.ID))
		none := NewID(w.agent.ID)
		for _, test := range []struct {
			name     string
			caller   Caller
			agent    uuid.UUID
			ofAgent  error
			inOthers error // in a session that is another's, and in one that does not exist
		}{
			{"another organization, of its own agent", foreign.byKey(), foreign.agent.ID, nil, ErrUnknownSession},
			{"another organization, of the session's agent", foreign.byKey(), w.agent.ID, ErrUnknownAgent, ErrUnknownSession},
			{"another organization, of no agent", foreign.byKey(), NewRootID(), ErrUnknownAgent, ErrUnknownSession},
			{"its organization, of another agent", w.byKey(), neighbour.Agent, nil, ErrUnknownSession},
			{"an agent of the same cell, of another", byToken(neighbour), w.agent.ID, ErrUnknownAgent, ErrUnknownAgent},
			{"an agent of another cell, of another", byToken(distant), w.agent.ID, ErrUnknownAgent, ErrUnknownAgent},
		} {
			for session, want := range map[uuid.UUID]error{
				uuid.Nil: test.ofAgent, w.session.ID: test.inOthers, none: test.inOthers, otherCell(none): test.inOthers,
			} {
				page, err := s.Transactions(t.Context(), test.caller, Query{Limit: 1, Agent: test.agent, Session: session})
				wantError(t, fmt.Sprint(test.name, ", in ", session), err, want)
				wantEqual(t, "how many transactions "+test.name+" sees", len(page.Items), 0)
			}
		}
		for _, caller := range []Caller{foreign.byKey(), byToken(neighbour), byToken(distant)} {
			wantEqual(t, "how many transactions are another's", len(must(s.Transactions(t.Context(), caller, Query{Limit: 10}))(t).Items), 0)
		}
	})
}

func TestAnIndexEntryOfAnothersTransactionShowsNothing(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, NewSession{MaxActions: 10})
		theirs := foreign.begin(t, s, foreign.exchange(t, s).AccessToken, 0)
		addEntries(t, s, s.keys.OrganizationTransactions(w.key.Organization), theirs.ID)
		addEntries(t, s, s.keys.AgentTransactions(w.agent.ID), theirs.ID)
		for name, list := range w.transactionLists(w.exchange(t, s), uuid.Nil) {
			list.q.Limit = 10
			wantEqual(t, "how many are listed "+name, len(w.listedTransactions(t, s, list.caller, list.q)), 0)
		}
	})
}

func TestReadersDropEntriesOfTransactionsThatAreGone(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10}, func(t *testing.T, s *Store, w tenant) {
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
				wantEqual(t, "how many are listed of "+index, len(w.listedTransactions(t, s, w.byKey(), q)), 1)
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
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		begun := w.begin(t, s, grant.AccessToken, 0)
		for name, key := range map[string]string{
			"the transactions": s.keys.Transaction(w.agent.ID, begun.ID), "their agents": s.keys.Agent(w.agent.ID),
			"their sessions": s.keys.Session(w.agent.ID, w.session.ID),
		} {
			wantUnchanged(t, s, name, func() {
				read := func() error { return errOf(s.Transactions(t.Context(), w.byKey(), Query{Limit: 10})) }
				wantLost(t, name, p, key, read, ErrUnavailable)
			})
		}
	})
}

// The entry is written before the transaction: whatever is lost on the way, nothing is begun that no list shows.
func TestALostIndexEntryOfATransactionLeavesNothingInDoubt(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		begin := func() error { return errOf(s.Begin(t.Context(), grant.AccessToken, w.beginning(0))) }
		// Sent more than once, it does no harm: the same entry is written.
		wantLost(t, "Begin", p, s.keys.OrganizationTransactions(w.key.Organization), begin, ErrUnavailable)
		w.wantUsage(t, s, w.session.Usage)
		wantEqual(t, "how many are listed", len(w.listedTransactions(t, s, byToken(grant), Query{Limit: 10})), 0)
	})
}

func TestADamagedTransactionIsAnErrorAndNeverShown(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, field := range []string{"ty", "b", "x", "st"} {
			w := newTenant(t, s, NewSession{MaxActions: 10})
			begun := w.begin(t, s, w.exchange(t, s).AccessToken, 0)
			must(peek(t, s).HDel(t.Context(), s.keys.Transaction(w.agent.ID, begun.ID), field).Result())(t)
			wantError(t, "Transaction without "+field, errOf(s.Transaction(t.Context(), w.byKey(), begun.ID)), errReply)
			wantError(t, "Transactions without "+field, errOf(s.Transactions(t.Context(), w.byKey(), Query{Limit: 1})), errReply)
		}
	})
}
