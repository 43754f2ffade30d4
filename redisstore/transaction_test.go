package redisstore

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/event"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

func TestATransactionIsReadAsItWasBegun(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.Max})
		grant := w.exchange(t, s)
		for i, n := range []NewTransaction{
			{Session: w.session.ID, ActionType: "order.place", PreState: `{}`, Lifetime: time.Second},
			{Session: w.session.ID, ActionType: "größe", PreState: `{"stock":{"a":[1,2]}}`, Value: money.Max, Irreversible: true,
				Metadata: `{"order":7}`, Lifetime: 30 * 24 * time.Hour},
			{ActionType: "mail.send", PreState: `{"draft":"\n"}`, Value: 12_345_678, Lifetime: time.Hour},
			{ActionType: "mail.send", PreState: `{}`, Irreversible: true, Metadata: `{}`, Lifetime: time.Minute},
		} {
			before := time.Now().Add(-time.Millisecond)
			begun := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
			if begun.Created.Before(before) || begun.Created.After(time.Now()) {
				t.Errorf("created at %s", begun.Created)
			}
			if kernel.CellOf(begun.ID) != kernel.CellOf(w.agent.ID) {
				t.Errorf("transaction %s of agent %s", begun.ID, w.agent.ID)
			}
			want := Transaction{
				ID: begun.ID, Agent: w.agent.ID, Session: n.Session, Status: Pending, ActionType: n.ActionType,
				PreState: n.PreState, Metadata: n.Metadata, Hold: n.Value, Reversible: !n.Irreversible,
				Created: begun.Created, Expires: begun.Created.Add(n.Lifetime),
			}
			if n.Session != uuid.Nil {
				want.Sequence, want.Held = int64(i+1), n.Value
			}
			if !reflect.DeepEqual(begun, want) {
				t.Errorf("begun %+v, want %+v", begun, want)
			}
			for _, caller := range []Caller{w.byKey(), byToken(grant)} {
				if read := must(s.Transaction(t.Context(), caller, begun.ID))(t); !reflect.DeepEqual(read, want) {
					t.Errorf("read %+v, want %+v", read, want)
				}
			}
		}
	})
}

func TestBeginCountsOneActionAndHoldsTheValue(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 10 * money.USD})
		token := w.exchange(t, s).AccessToken
		want := w.session.Usage
		for _, value := range []money.MicroUSD{0, 1, 4 * money.USD, 6*money.USD - 1} {
			w.begin(t, s, token, value)
			want.ActionCount++
			want.ValueHeld += value
			w.wantUsage(t, s, want)
		}
		usage, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 1})
		wantError(t, "a charge beside what is held", err, &LimitError{"max_value_usd", want})
		if usage != (Usage{}) {
			t.Errorf("%+v", usage)
		}
		usage = must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 6}))(t)
		if want.ActionCount = 10; usage != want {
			t.Errorf("charged to %+v, want %+v", usage, want)
		}
		_, err = s.Begin(t.Context(), token, w.beginning(0))
		wantError(t, "an eleventh action", err, &LimitError{"max_actions", want})
	})
}

func TestATransactionWithoutASessionHoldsNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		token := w.exchange(t, s).AccessToken
		value, trail := 3*money.USD, w.follow(s)
		for name, settle := range map[string]func(uuid.UUID) (Transaction, error){
			"committed for what it was begun with": func(id uuid.UUID) (Transaction, error) {
				return s.Commit(t.Context(), token, id, Commit{})
			},
			"committed for another value": func(id uuid.UUID) (Transaction, error) {
				return s.Commit(t.Context(), token, id, Commit{Value: &value})
			},
			"rolled back": func(id uuid.UUID) (Transaction, error) {
				return s.Rollback(t.Context(), w.byKey(), id, Rollback{})
			},
		} {
			begun := must(s.Begin(t.Context(), token, w.alone(2*money.USD)))(t)
			settled := must(settle(begun.ID))(t)
			want := map[string]money.MicroUSD{"committed for what it was begun with": 2 * money.USD, "committed for another value": value}[name]
			if settled.Value != want || settled.Overage != 0 || settled.Held != 0 || begun.Held != 0 || begun.Sequence != 0 {
				t.Errorf("%s: %+v, begun as %+v", name, settled, begun)
			}
			if settled.Status == Committed {
				must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
			}
			events := trail(t)
			if last := events[len(events)-1]; last.Type != "transaction.rolled_back" || !reflect.DeepEqual(last.Data, event.Data{Released: new(money.MicroUSD(0))}) {
				t.Errorf("%s: %+v", name, last)
			}
		}
		w.wantUsage(t, s, w.session.Usage)
		for _, key := range keysKept(t, s) {
			if strings.Contains(key, ":sh:") || strings.Contains(key, ":stx:") || strings.Contains(key, uuid.Nil.String()) {
				t.Errorf("%s is kept", key)
			}
		}
	})
}

func TestSequenceNumbersCountASessionsTransactionsWithoutGaps(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		second := w
		second.session = w.newSession(t, s, time.Hour)
		token := w.exchange(t, s).AccessToken
		for i := int64(1); i <= 4; i++ {
			if _, err := s.Begin(t.Context(), token, w.beginning(2*money.USD)); err == nil {
				t.Error("too much value is held")
			}
			begun := w.begin(t, s, token, 0)
			must(s.Begin(t.Context(), token, w.alone(0)))(t)
			other := second.begin(t, s, token, 0)
			if i%2 == 0 {
				must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
			}
			if begun.Sequence != i || other.Sequence != i {
				t.Errorf("numbers %d and %d, want %d", begun.Sequence, other.Sequence, i)
			}
		}
	})
}

func TestARefusedBeginChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 3, MaxValue: money.USD})
		grant, revoked := w.exchange(t, s), w.exchange(t, s)
		token := grant.AccessToken
		if err := s.RevokeFamily(t.Context(), token, revoked.Family); err != nil {
			t.Fatal(err)
		}
		foreign := newTenant(t, s, NewSession{MaxActions: 5, MaxValue: money.USD})
		neighbour := putAgent(t, s, w.key, NewID(w.agent.ID))
		neighbours := must(s.CreateSession(t.Context(), w.key,
			NewSession{Agent: neighbour.Agent, MaxActions: 5, Lifetime: time.Hour}))(t)
		ended, expired := newSessionThatIs(t, s, Completed), newSessionThatIs(t, s, Expired)
		dead := newTenant(t, s, NewSession{MaxActions: 1})
		deadToken := dead.exchange(t, s).AccessToken
		must(s.RevokeAgent(t.Context(), dead.key, dead.agent.ID))(t)
		elsewhere := token
		elsewhere.Organization = foreign.key.Organization
		w.begin(t, s, token, 400_000)
		usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 500_000}))(t)
		for _, n := range []NewTransaction{w.beginning(money.Max), w.beginning(0), w.beginning(0)} {
			_, _ = s.Begin(t.Context(), token, n) // so that the audit trail has noted both limits
		}
		usage.ActionCount = 3
		for _, test := range []struct {
			name    string
			token   AccessToken
			session uuid.UUID
			value   money.MicroUSD
			want    error
		}{
			{"too many actions", token, w.session.ID, 0, &LimitError{"max_actions", usage}},
			{"too many actions and too much value", token, w.session.ID, money.Max, &LimitError{"max_actions", usage}},
			{"an unknown session", token, NewID(w.agent.ID), 0, ErrUnknownSession},
			{"an unknown session in another cell", token, otherCell(w.agent.ID), 0, ErrUnknownSession},
			{"another organization's session", token, foreign.session.ID, 0, ErrUnknownSession},
			{"another agent's session in the same cell", token, neighbours.ID, 0, ErrUnknownSession},
			{"an ended session", ended.exchange(t, s).AccessToken, ended.session.ID, 0, &NotActiveError{Completed}},
			{"an expired session", expired.exchange(t, s).AccessToken, expired.session.ID, 0, &NotActiveError{Expired}},
			{"a revoked family", revoked.AccessToken, w.session.ID, 0, ErrInvalidToken},
			{"a revoked agent", deadToken, dead.session.ID, 0, ErrInvalidToken},
			{"a revoked agent, without a session", deadToken, uuid.Nil, 0, ErrInvalidToken},
			{"a token of another organization", elsewhere, w.session.ID, 0, ErrInvalidToken},
			{"a token of another organization, without a session", elsewhere, uuid.Nil, 0, ErrInvalidToken},
		} {
			wantUnchanged(t, s, test.name, func() {
				n := w.beginning(test.value)
				n.Session = test.session
				begun, err := s.Begin(t.Context(), test.token, n)
				wantError(t, test.name, err, test.want)
				if begun != (Transaction{}) {
					t.Errorf("%s: %+v", test.name, begun)
				}
			})
		}
	})
}

// What a commit costs is charged as far as the limit allows beside what is used and held otherwise; the rest is overage.
func TestCommitChargesWhatItCostAndReleasesTheRest(t *testing.T) {
	t.Parallel()
	cost := func(value money.MicroUSD) *money.MicroUSD { return &value }
	for _, test := range []struct {
		name           string
		used, held     money.MicroUSD // otherwise, of 100
		hold           money.MicroUSD
		cost           *money.MicroUSD
		value, overage money.MicroUSD
	}{
		{"what it held", 0, 0, 40, nil, 40, 0},
		{"what it held, said so", 0, 0, 40, cost(40), 40, 0},
		{"what it held, all of the limit", 30, 30, 40, nil, 40, 0},
		{"less", 10, 10, 40, cost(15), 15, 0},
		{"nothing", 10, 10, 40, cost(0), 0, 0},
		{"nothing of nothing", 10, 10, 0, nil, 0, 0},
		{"more, which fits", 10, 10, 40, cost(80), 80, 0},
		{"more, of which one does not fit", 10, 10, 40, cost(81), 80, 1},
		{"more, of which nothing fits beyond the hold", 30, 30, 40, cost(100), 40, 60},
		{"something that held nothing, with no room", 60, 40, 0, cost(7), 0, 7},
		{"far more", 0, 0, 1, cost(money.Max), 100, money.Max - 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
				grant := w.exchange(t, s)
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: test.used}))(t)
				w.begin(t, s, grant.AccessToken, test.held)
				begun := w.begin(t, s, grant.AccessToken, test.hold)
				before := time.Now().Add(-time.Millisecond)
				committed := must(s.Commit(t.Context(), grant.AccessToken, begun.ID,
					Commit{Value: test.cost, PostState: `{"done":true}`}))(t)
				if committed.Committed.Before(before) || committed.Committed.After(time.Now()) {
					t.Errorf("committed at %s", committed.Committed)
				}
				want := begun
				want.Status, want.PostState, want.Committed = Committed, `{"done":true}`, committed.Committed
				want.Held, want.Value, want.Overage = 0, test.value, test.overage
				w.wantTransaction(t, s, grant, committed, want)

				session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				usage := w.session.Usage
				usage.ActionCount, usage.ValueUsed, usage.ValueHeld = 3, test.used+test.value, test.held
				if session.Usage != usage || session.ValueOverage != test.overage {
					t.Errorf("the session has %+v and overage %s, want %+v and %s",
						session.Usage, session.ValueOverage, usage, test.overage)
				}

				undone := must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{Reason: "returned"}))(t)
				want.Status, want.Reason, want.RolledBack = RolledBack, "returned", undone.RolledBack
				w.wantTransaction(t, s, grant, undone, want)
				session = must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				usage.ValueUsed = test.used
				if session.Usage != usage || session.ValueOverage != 0 {
					t.Errorf("rolled back, the session has %+v and overage %s, want %+v and none",
						session.Usage, session.ValueOverage, usage)
				}
			})
		})
	}
}

// A session's overage stops where Redis's Lua counts no further.
func TestOverageStopsWhereItWouldBecomeInexact(t *testing.T) {
	t.Parallel()
	const most = 1<<53 - 1
	for _, test := range []struct{ before, cost, after, undone money.MicroUSD }{
		{most - money.Max, money.Max, most, most - money.Max},
		{most - 7, 7, most, most - 7},
		{most - 7, 8, most, most - 8},
		{most - 7, money.Max, most, most - money.Max},
		{most, 1, most, most - 1},
	} {
		onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
			w := newTenant(t, s, NewSession{MaxActions: 10})
			token := w.exchange(t, s).AccessToken
			stored := s.keys.Session(w.agent.ID, w.session.ID)
			must(peek(t, s).HSet(t.Context(), stored, "ov", int64(test.before)).Result())(t)
			begun := w.begin(t, s, token, 0)
			committed := must(s.Commit(t.Context(), token, begun.ID, Commit{Value: &test.cost}))(t)
			if committed.Value != 0 || committed.Overage != test.cost {
				t.Errorf("%+v", committed)
			}
			read := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			changed := must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxActions: new(int64(11))}))(t)
			if read.ValueOverage != test.after || changed.ValueOverage != test.after {
				t.Errorf("read %s, changed %s, want %s", read.ValueOverage, changed.ValueOverage, test.after)
			}
			must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
			if read = must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); read.ValueOverage != test.undone {
				t.Errorf("rolled back, it is %s, want %s", read.ValueOverage, test.undone)
			}
		})
	}
}

func TestARollbackTakesNoMoreOverageThanThereIs(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		token := w.exchange(t, s).AccessToken
		begun := w.begin(t, s, token, 0)
		must(s.Commit(t.Context(), token, begun.ID, Commit{Value: new(money.MicroUSD(9))}))(t)
		must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "ov", 8).Result())(t)
		must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		if read := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); read.ValueOverage != 0 {
			t.Errorf("%s is left", read.ValueOverage)
		}
	})
}

func TestRollbackOfAPendingTransactionReleasesItsHoldAndLeavesItsActionCounted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		usage := w.session.Usage
		for caller, reason := range map[Caller]string{w.byKey(): "", byToken(grant): "größe"} {
			for _, irreversible := range []bool{false, true} { // which is about what is committed
				n := w.beginning(money.USD)
				n.Irreversible = irreversible
				begun := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
				before := time.Now().Add(-time.Millisecond)
				undone := must(s.Rollback(t.Context(), caller, begun.ID, Rollback{Reason: reason}))(t)
				if undone.RolledBack.Before(before) || undone.RolledBack.After(time.Now()) {
					t.Errorf("rolled back at %s", undone.RolledBack)
				}
				want := begun
				want.Status, want.Reason, want.RolledBack, want.Held = RolledBack, reason, undone.RolledBack, 0
				w.wantTransaction(t, s, grant, undone, want)
				usage.ActionCount++
				w.wantUsage(t, s, usage)
			}
		}
	})
}

func TestACommittedTransactionThatIsIrreversibleStaysCommitted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		for name, n := range map[string]NewTransaction{"in a session": w.beginning(7), "alone": w.alone(7)} {
			n.Irreversible = true
			begun := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
			must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{}))(t)
			for _, caller := range []Caller{w.byKey(), byToken(grant)} {
				wantUnchanged(t, s, name, func() {
					_, err := s.Rollback(t.Context(), caller, begun.ID, Rollback{Reason: "why", Scopes: w.agent.Scopes})
					wantError(t, name, err, ErrNotReversible)
				})
			}
		}
	})
}

func TestATransactionIsSettledOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		grant := w.exchange(t, s)
		token, ctx := grant.AccessToken, t.Context()
		doomed := w
		doomed.session = w.newSession(t, s, time.Hour)
		settled := map[string]struct {
			id     uuid.UUID
			status Status
		}{}
		for _, n := range []NewTransaction{w.beginning(5), w.alone(5)} {
			where := map[bool]string{true: ", alone", false: ", in a session"}[n.Session == uuid.Nil]
			begin := func() Transaction { return must(s.Begin(ctx, token, n))(t) }
			committed := must(s.Commit(ctx, token, begin().ID, Commit{}))(t)
			pendingUndone := must(s.Rollback(ctx, w.byKey(), begin().ID, Rollback{}))(t)
			undone := must(s.Commit(ctx, token, begin().ID, Commit{}))(t)
			must(s.Rollback(ctx, byToken(grant), undone.ID, Rollback{Scopes: w.agent.Scopes}))(t)
			late := begin()
			w.letPass(t, s, late)
			settled["committed"+where] = struct {
				id     uuid.UUID
				status Status
			}{committed.ID, Committed}
			settled["rolled back"+where] = struct {
				id     uuid.UUID
				status Status
			}{pendingUndone.ID, RolledBack}
			settled["committed and rolled back"+where] = struct {
				id     uuid.UUID
				status Status
			}{undone.ID, RolledBack}
			settled["expired"+where] = struct {
				id     uuid.UUID
				status Status
			}{late.ID, Expired}
		}
		inEnded := doomed.begin(t, s, token, 5)
		must(s.EndSession(ctx, w.byKey(), doomed.session.ID))(t)
		settled["of a session that ended"] = struct {
			id     uuid.UUID
			status Status
		}{inEnded.ID, RolledBack}
		must(s.Session(ctx, w.byKey(), w.session.ID))(t) // which releases the hold that is due

		cost := money.MicroUSD(9)
		for name, transaction := range settled {
			wantUnchanged(t, s, name, func() {
				got, err := s.ChangeHold(ctx, token, transaction.id, NewHold{Value: &cost, Lifetime: new(time.Hour)})
				wantError(t, "ChangeHold of one "+name, err, &NotPendingError{transaction.status})
				if transaction.status != Expired { // which is committed late
					got, err = s.Commit(ctx, token, transaction.id, Commit{Value: &cost, PostState: `{}`})
					wantError(t, "Commit of one "+name, err, &NotPendingError{transaction.status})
				}
				if transaction.status != Committed {
					_, err = s.Rollback(ctx, w.byKey(), transaction.id, Rollback{Reason: "again"})
					wantError(t, "Rollback of one "+name, err, &NotPendingError{transaction.status})
				}
				if got != (Transaction{}) {
					t.Errorf("%s: %+v", name, got)
				}
			})
		}
	})
}

func TestAnInaccessibleTransactionLooksUnknown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 10}), newTenant(t, s, NewSession{MaxActions: 10})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), dead.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		alone := must(s.Begin(t.Context(), grant.AccessToken, w.alone(0)))(t)
		mine := []uuid.UUID{w.begin(t, s, grant.AccessToken, 0).ID, alone.ID}
		none := []uuid.UUID{NewID(w.agent.ID), otherCell(w.agent.ID), w.session.ID, w.agent.ID, uuid.Nil}
		for _, test := range []struct {
			name   string
			caller Caller
			ids    []uuid.UUID
			want   error
		}{
			{"its own agent, of none", byToken(grant), none, ErrUnknownTransaction},
			{"its organization, of none", w.byKey(), none, ErrUnknownTransaction},
			{"another organization", foreign.byKey(), append(mine, none...), ErrUnknownTransaction},
			{"another organization's agent", byToken(foreign.exchange(t, s)), append(mine, none...), ErrUnknownTransaction},
			{"an agent of the same cell", byToken(putAgent(t, s, w.key, NewID(w.agent.ID))), mine, ErrUnknownTransaction},
			{"an agent of another cell", byToken(putAgent(t, s, w.key, otherCell(w.agent.ID))), mine, ErrUnknownTransaction},
			{"a revoked family", byToken(dead), append(mine, none...), ErrInvalidToken},
			{"a wrong key", Caller{Key: &APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}}, append(mine, none...), ErrInvalidAPIKey},
		} {
			wantUnchanged(t, s, test.name, func() {
				for _, id := range test.ids {
					_, err := s.Transaction(t.Context(), test.caller, id)
					wantError(t, "Transaction by "+test.name, err, test.want)
					_, err = s.Rollback(t.Context(), test.caller, id, Rollback{})
					wantError(t, "Rollback by "+test.name, err, test.want)
					if test.caller.Token != nil {
						_, err = s.Commit(t.Context(), *test.caller.Token, id, Commit{})
						wantError(t, "Commit by "+test.name, err, test.want)
					}
				}
			})
		}
	})
}

// Transactions begun in time settle, but spend no more than they held by then.
func TestTransactionsOfAnExpiredSessionSettle(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		cost := money.MicroUSD(70)
		committed, undone := w.begin(t, s, grant.AccessToken, 40), w.begin(t, s, grant.AccessToken, 50)
		w.letSessionPass(t, s)
		w.waitUntil(t, s, Expired)
		got := must(s.Commit(t.Context(), grant.AccessToken, committed.ID, Commit{Value: &cost}))(t)
		if got.Status != Committed || got.Value != 40 || got.Overage != 30 {
			t.Errorf("%+v", got)
		}
		must(s.Rollback(t.Context(), byToken(grant), undone.ID, Rollback{}))(t)
		session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		if session.ValueUsed != 40 || session.ValueHeld != 0 || session.ValueOverage != 30 || session.ActionCount != 2 {
			t.Errorf("%+v", session)
		}
		must(s.Rollback(t.Context(), w.byKey(), committed.ID, Rollback{}))(t)
		if session = must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); session.ValueUsed != 0 || session.ValueOverage != 0 {
			t.Errorf("%+v", session)
		}
	})
}

func TestTransactionsOfARevokedAgentAreForItsOrganizationToRollBack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		begun := w.begin(t, s, grant.AccessToken, 40)
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		wantUnchanged(t, s, "by its token", func() {
			_, err := s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{})
			wantError(t, "Commit", err, ErrInvalidToken)
			_, err = s.Rollback(t.Context(), byToken(grant), begun.ID, Rollback{})
			wantError(t, "Rollback", err, ErrInvalidToken)
		})
		undone := must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		if session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); undone.Status != RolledBack || session.ValueHeld != 0 {
			t.Errorf("%+v, %+v", undone, session)
		}
	})
}

// The status is read from the session's end, so it holds for as long as the transaction can be read, whatever of the
// session is kept.
func TestEndingASessionRollsBackWhatIsPending(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		pending, expired := w.begin(t, s, grant.AccessToken, 30), w.begin(t, s, grant.AccessToken, 20)
		committed := w.begin(t, s, grant.AccessToken, 10)
		must(s.Commit(t.Context(), grant.AccessToken, committed.ID, Commit{}))(t)
		w.letPass(t, s, expired)
		ended := must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		if session.ValueHeld != 0 || session.ValueUsed != 10 {
			t.Errorf("%+v", session)
		}
		want := map[uuid.UUID]Status{pending.ID: RolledBack, expired.ID: Expired, committed.ID: Committed}
		w.wantStatuses(t, s, grant, want, ended)

		must(peek(t, s).HSet(t.Context(), s.keys.Transaction(w.agent.ID, pending.ID), "x", ended.Add(time.Millisecond).UnixMilli()).Result())(t)
		w.wantStatuses(t, s, grant, want, ended) // though its own time is up as well by now

		must(peek(t, s).Del(t.Context(), s.keys.Session(w.agent.ID, w.session.ID),
			s.keys.Transaction(w.agent.ID, expired.ID)).Result())(t) // which are kept as long or shorter
		delete(want, expired.ID)
		w.wantStatuses(t, s, grant, want, time.Time{})
		wantUnchanged(t, s, "settling what is settled", func() {
			_, err := s.Commit(t.Context(), grant.AccessToken, pending.ID, Commit{})
			wantError(t, "Commit", err, &NotPendingError{RolledBack})
		})
		undone := must(s.Rollback(t.Context(), w.byKey(), committed.ID, Rollback{}))(t)
		if undone.Status != RolledBack {
			t.Errorf("%+v", undone)
		}
		for _, key := range keysKept(t, s) {
			if key == s.keys.Session(w.agent.ID, w.session.ID) {
				t.Error("the session is back")
			}
		}
	})
}

func TestTransactionsAndWhatTheyNeedStayForTheRetention(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: 48 * time.Hour}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, Lifetime: time.Hour})
		token, agent, session := w.exchange(t, s).AccessToken, w.agent.ID, w.session.ID
		ttls := func(kept map[string]time.Duration) {
			t.Helper()
			for key, want := range kept {
				wantTTL(t, s, key, want*time.Hour)
			}
		}
		begin := func(lifetime time.Duration) Transaction {
			n := w.beginning(10)
			n.Lifetime = lifetime * time.Hour
			return must(s.Begin(t.Context(), token, n))(t)
		}
		long := begin(5) // longer than the session
		short := begin(2)
		ttls(map[string]time.Duration{
			s.keys.Session(agent, session): 53, s.keys.Holds(agent, session): 53, s.keys.SessionTransactions(agent, session): 53,
			s.keys.AgentTransactions(agent): 53, s.keys.AgentSessions(agent): 53,
			s.keys.Transaction(agent, long.ID): 53, s.keys.Transaction(agent, short.ID): 50,
		})
		must(s.Commit(t.Context(), token, short.ID, Commit{}))(t)
		must(s.Rollback(t.Context(), w.byKey(), long.ID, Rollback{}))(t)
		ttls(map[string]time.Duration{
			s.keys.Session(agent, session): 53, s.keys.SessionTransactions(agent, session): 53, s.keys.AgentTransactions(agent): 53,
			s.keys.Transaction(agent, long.ID): 48, s.keys.Transaction(agent, short.ID): 48,
		})

		// Settled late, when what was kept with it has nearly run out.
		late := begin(1)
		for _, settle := range []func() (Transaction, error){
			func() (Transaction, error) { return s.Commit(t.Context(), token, late.ID, Commit{}) },
			func() (Transaction, error) { return s.Rollback(t.Context(), w.byKey(), late.ID, Rollback{}) },
		} {
			kept := []string{s.keys.Transaction(agent, late.ID), s.keys.SessionTransactions(agent, session), s.keys.AgentTransactions(agent)}
			for _, key := range kept {
				must(peek(t, s).PExpire(t.Context(), key, time.Hour).Result())(t)
			}
			must(settle())(t)
			for _, key := range kept {
				wantTTL(t, s, key, 48*time.Hour)
			}
		}

		alone := w.alone(0)
		alone.Lifetime = 30 * time.Hour
		ttls(map[string]time.Duration{
			s.keys.Transaction(agent, must(s.Begin(t.Context(), token, alone))(t).ID): 78, s.keys.AgentTransactions(agent): 78,
		})
	})
}

// A replay returns the transaction, so the transaction is kept at least as long as the outcome.
func TestATransactionSettledByAnIdempotencyKeyIsKeptForItsReplay(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: time.Hour}, func(t *testing.T, s *Store) {
		for name, settle := range map[string]func(tenant, AccessToken, uuid.UUID, *Idempotency) error{
			"commit": func(_ tenant, token AccessToken, id uuid.UUID, idem *Idempotency) error {
				_, err := s.Commit(t.Context(), token, id, Commit{Idempotency: idem})
				return err
			},
			"rollback": func(w tenant, _ AccessToken, id uuid.UUID, idem *Idempotency) error {
				_, err := s.Rollback(t.Context(), w.byKey(), id, Rollback{Idempotency: idem})
				return err
			},
		} {
			w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
			token := w.exchange(t, s).AccessToken
			for i, idem := range []*Idempotency{nil, {Key: name}, nil} { // the last of which does not shorten what is kept
				begun := w.begin(t, s, token, 1)
				wantError(t, name, settle(w, token, begun.ID, idem), nil)
				wantTTL(t, s, s.keys.Transaction(w.agent.ID, begun.ID), []time.Duration{time.Hour, kernel.OutcomeLifetime, time.Hour}[i])
			}
			wantTTL(t, s, s.keys.AgentTransactions(w.agent.ID), kernel.OutcomeLifetime)
			wantTTL(t, s, s.keys.SessionTransactions(w.agent.ID, w.session.ID), kernel.OutcomeLifetime)
		}
	})
}

func TestATransactionIsGoneAfterTheRetention(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{Retention: 20 * time.Millisecond}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		begun := must(s.Begin(t.Context(), grant.AccessToken, w.alone(0)))(t)
		must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{}))(t)
		eventually(t, "the transaction is gone", func() bool {
			_, err := s.Transaction(t.Context(), byToken(grant), begun.ID)
			return err == ErrUnknownTransaction
		})
		_, err := s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{})
		wantError(t, "Rollback", err, ErrUnknownTransaction)
	})
}

func TestATransactionExpiresByItself(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		n := w.beginning(60)
		n.Lifetime = 30 * time.Millisecond
		begun := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
		eventually(t, "it has expired", func() bool {
			return must(s.Transaction(t.Context(), byToken(grant), begun.ID))(t).Status == Expired
		})
		begun.Status, begun.Held = Expired, 0
		w.wantTransaction(t, s, grant, must(s.Transaction(t.Context(), w.byKey(), begun.ID))(t), begun)
		must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 100}))(t)
	})
}

// Only permanent objects have no TTL: organizations, agents, their indexes and trails.
func TestNothingIsKeptForGoodThatBelongsToASession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		grant := w.exchange(t, s)
		for i, idem := range []*Idempotency{nil, {Key: "k"}} {
			own := func(name string) *Idempotency {
				if idem == nil {
					return nil
				}
				return &Idempotency{Key: name}
			}
			n := w.beginning(5)
			n.Idempotency = own("begin")
			first := must(s.Begin(t.Context(), grant.AccessToken, n))(t)
			must(s.Commit(t.Context(), grant.AccessToken, first.ID, Commit{Idempotency: own("commit")}))(t)
			must(s.Rollback(t.Context(), w.byKey(), first.ID, Rollback{Idempotency: own("rollback")}))(t)
			must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: own("charge")}))(t)
			must(s.ChargeBatch(t.Context(), byToken(grant), []BatchCharge{{w.session.ID, Charge{Count: 1}}}, own("batch")))(t)
			must(s.Begin(t.Context(), grant.AccessToken, w.alone(0)))(t)
			w.letPass(t, s, w.begin(t, s, grant.AccessToken, 5))
			if i == 1 {
				w.begin(t, s, grant.AccessToken, 5)
			}
			must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Lifetime: new(time.Hour)}))(t)
		}
		must(s.EndSession(t.Context(), w.byKey(), w.newSession(t, s, time.Hour).ID))(t)
		want := []string{"a", "ev", "o", "oa", "oo", "os", "ot"}
		var forGood, timed []string
		client := peek(t, s)
		for _, key := range keysKept(t, s) {
			kind, _, _ := strings.Cut(strings.TrimPrefix(key, s.config.Prefix), ":")
			if must(client.PTTL(t.Context(), key).Result())(t) < 0 {
				forGood = append(forGood, kind)
			} else if !slices.Contains(timed, kind) {
				timed = append(timed, kind)
			}
		}
		slices.Sort(forGood)
		slices.Sort(timed)
		if !slices.Equal(forGood, want) {
			t.Errorf("%q stand for good, want %q", forGood, want)
		}
		if want := []string{"af", "as", "at", "f", "i", "s", "sh", "stx", "t"}; !slices.Equal(timed, want) {
			t.Errorf("%q are for a time, want %q", timed, want)
		}
	})
}

// Begins, charges and commits at once from two instances of the service fill a session exactly, and not beyond.
func TestTransactionsAtOnceFillALimitExactly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		session NewSession
	}{
		{"actions", NewSession{MaxActions: 503, MaxValue: money.Max}},
		{"value", NewSession{MaxActions: 1_000_000, MaxValue: 2_003}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, test.session)
				second := must(Open(s.config))(t)
				defer second.Close()
				grant := w.exchange(t, s)
				var actions, value, begun atomic.Int64 // acknowledged
				var wg sync.WaitGroup
				for i := range 64 {
					store := []*Store{s, second}[i%2]
					wg.Go(func() {
						for _, hold := range []money.MicroUSD{11, 3, 1} {
							for w.fits(t, store, grant, i, hold, &actions, &value, &begun) {
							}
						}
					})
				}
				wg.Wait()

				usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
				if usage.ActionCount != actions.Load() || int64(usage.ValueUsed) != value.Load() || usage.ValueHeld != 0 {
					t.Errorf("%d actions and %d were acknowledged, and %+v is stored", actions.Load(), value.Load(), usage)
				}
				if usage.ActionCount != usage.MaxActions && usage.ValueUsed != usage.MaxValue {
					t.Errorf("neither limit is filled: %+v", usage)
				}
				numbers := map[int64]bool{}
				for _, one := range w.listedTransactions(t, s, w.byKey(), Query{Limit: 200, Session: w.session.ID}) {
					numbers[one.Sequence] = true
				}
				for i := int64(1); i <= begun.Load(); i++ {
					if !numbers[i] {
						t.Errorf("no transaction has the number %d of %d", i, begun.Load())
					}
				}
				if len(numbers) != int(begun.Load()) {
					t.Errorf("%d numbers, and %d transactions were begun", len(numbers), begun.Load())
				}
			})
		})
	}
}

// fits does what one of many does at once: charges, or begins and commits, for the value. It says whether there was room.
func (w tenant) fits(t *testing.T, s *Store, g Grant, i int, value money.MicroUSD, actions, used, begun *atomic.Int64) bool {
	if i%4 == 3 {
		fits := chargeFits(t, s, byToken(g), w.session.ID, Charge{Count: 1, Value: value})
		if fits {
			actions.Add(1)
			used.Add(int64(value))
		}
		return fits
	}
	held, err := s.Begin(t.Context(), g.AccessToken, w.beginning(value))
	if reached := new(LimitError); errors.As(err, &reached) {
		if usage := reached.Usage; usage.ActionCount > usage.MaxActions || usage.ValueUsed+usage.ValueHeld > usage.MaxValue {
			t.Errorf("beyond a limit: %+v", usage)
		}
		return false
	}
	if err != nil {
		t.Error(err)
		return false
	}
	actions.Add(1)
	begun.Add(1)
	if i%4 == 2 && value > 1 { // gives back, for smaller ones to take
		if _, err := s.Rollback(t.Context(), byToken(g), held.ID, Rollback{}); err != nil {
			t.Error(err)
		}
		return false
	}
	committed, err := s.Commit(t.Context(), g.AccessToken, held.ID, Commit{})
	if err != nil || committed.Value != value || committed.Overage != 0 {
		t.Errorf("%+v, %v", committed, err)
	}
	used.Add(int64(value))
	return true
}

// beginning is a transaction to begin in the tenant's session; alone is one without a session.
func (w tenant) beginning(value money.MicroUSD) NewTransaction {
	n := w.alone(value)
	n.Session = w.session.ID
	return n
}

func (w tenant) alone(value money.MicroUSD) NewTransaction {
	return NewTransaction{ActionType: "order.place", PreState: `{"stock":3}`, Value: value, Lifetime: time.Hour}
}

// begin begins a transaction in the tenant's session.
func (w tenant) begin(t *testing.T, s *Store, token AccessToken, value money.MicroUSD) Transaction {
	t.Helper()
	return must(s.Begin(t.Context(), token, w.beginning(value)))(t)
}

// letPass moves what is stored of pending transactions as if their time had been up for a second.
func (w tenant) letPass(t *testing.T, s *Store, transactions ...Transaction) {
	t.Helper()
	past := time.Now().Add(-time.Second).UnixMilli()
	client := peek(t, s)
	for _, one := range transactions {
		must(client.HSet(t.Context(), s.keys.Transaction(one.Agent, one.ID), "x", past).Result())(t)
		if one.Session == uuid.Nil {
			continue
		}
		hold := redis.Z{Score: float64(past), Member: string(one.ID[:]) + strconv.FormatInt(int64(one.Hold), 10)}
		must(client.ZAddXX(t.Context(), s.keys.Holds(one.Agent, one.Session), hold).Result())(t)
		must(client.HSet(t.Context(), s.keys.Session(one.Agent, one.Session), "hx", past).Result())(t)
	}
}

// letSessionPass moves what is stored of the tenant's session as if its lifetime had been over for a second.
func (w tenant) letSessionPass(t *testing.T, s *Store) {
	t.Helper()
	past := time.Now().Add(-time.Second).UnixMilli()
	must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "x", past).Result())(t)
}

// wantUsage checks how far the limits of the tenant's session are used.
func (w tenant) wantUsage(t *testing.T, s *Store, want Usage) {
	t.Helper()
	if got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage; got != want {
		t.Errorf("the session has %+v, want %+v", got, want)
	}
}

// wantTransaction checks a transaction as it was answered, as it is read and as it is listed.
func (w tenant) wantTransaction(t *testing.T, s *Store, g Grant, answered, want Transaction) {
	t.Helper()
	if !reflect.DeepEqual(answered, want) {
		t.Errorf("answered %+v, want %+v", answered, want)
	}
	listed := want
	listed.PreState, listed.PostState, listed.Metadata = "", "", ""
	for _, caller := range []Caller{w.byKey(), byToken(g)} {
		if read := must(s.Transaction(t.Context(), caller, want.ID))(t); !reflect.DeepEqual(read, want) {
			t.Errorf("read %+v, want %+v", read, want)
		}
		all := w.listedTransactions(t, s, caller, Query{Limit: 200})
		i := slices.IndexFunc(all, func(one Transaction) bool { return one.ID == want.ID })
		if i < 0 || !reflect.DeepEqual(all[i], listed) {
			t.Errorf("listed %+v, want %+v", all, listed)
		}
	}
}

// wantStatuses checks the status of transactions as they are read and listed, and since when those that are rolled back
// are.
func (w tenant) wantStatuses(t *testing.T, s *Store, g Grant, want map[uuid.UUID]Status, rolledBack time.Time) {
	t.Helper()
	for _, caller := range []Caller{w.byKey(), byToken(g)} {
		all := w.listedTransactions(t, s, caller, Query{Limit: 200})
		if len(all) != len(want) {
			t.Errorf("%d are listed, want %d", len(all), len(want))
		}
		for _, one := range all {
			read := must(s.Transaction(t.Context(), caller, one.ID))(t)
			if one.Status != want[one.ID] || read.Status != want[one.ID] || one.Held != 0 || read.Held != 0 {
				t.Errorf("listed %+v, read %+v, want %s", one, read, want[one.ID])
			}
			since := time.Time{}
			if one.Status == RolledBack {
				since = rolledBack
			}
			if !one.RolledBack.Equal(since) || !read.RolledBack.Equal(since) {
				t.Errorf("listed as rolled back at %s, read as %s, want %s", one.RolledBack, read.RolledBack, since)
			}
		}
	}
}

// listedTransactions follows a query to its last page.
func (w tenant) listedTransactions(t *testing.T, s *Store, c Caller, q Query) []Transaction {
	t.Helper()
	var all []Transaction
	for range 1000 {
		page := must(s.Transactions(t.Context(), c, q))(t)
		if len(page.Items) > q.Limit {
			t.Fatalf("%d transactions on a page of %d", len(page.Items), q.Limit)
		}
		all = append(all, page.Items...)
		if page.Next == uuid.Nil {
			return all
		}
		q.Before = page.Next
	}
	t.Fatal("the pages do not end")
	return nil
}

// Where agents share a cell, a script could reach the transactions of both.
func TestATransactionIsUnknownToAnotherAgentOfItsCell(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9, MaxValue: 9})
		own, theirs := w.exchange(t, s), inCellOf(t, s, w.agent.ID).exchange(t, s)
		begun := must(s.Begin(t.Context(), own.AccessToken, NewTransaction{Session: w.session.ID, ActionType: "a", PreState: "{}", Value: 3, Lifetime: time.Minute}))(t)
		_, err := s.Commit(t.Context(), theirs.AccessToken, begun.ID, Commit{})
		wantError(t, "a commit", err, ErrUnknownTransaction)
		_, err = s.Rollback(t.Context(), byToken(theirs), begun.ID, Rollback{})
		wantError(t, "a rollback", err, ErrUnknownTransaction)
		_, err = s.ChangeHold(t.Context(), theirs.AccessToken, begun.ID, NewHold{Value: new(money.MicroUSD(1))})
		wantError(t, "a change of its hold", err, ErrUnknownTransaction)
		_, err = s.Transaction(t.Context(), byToken(theirs), begun.ID)
		wantError(t, "a read", err, ErrUnknownTransaction)
		if is := must(s.Transaction(t.Context(), byToken(own), begun.ID))(t); is.Status != Pending || is.Held != 3 {
			t.Errorf("it is %s and holds %d", is.Status, is.Held)
		}
	})
}
