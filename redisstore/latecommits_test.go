package redisstore

import (
	"reflect"
	"testing"
	"time"

	"remit/internal/event"
	"remit/money"
)

// The money is spent, so it is charged as far as it fits now; the rest is overage.
func TestAnExpiredTransactionIsCommittedLate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		since          money.MicroUSD // used since it expired, of 100
		cost           *money.MicroUSD
		over           func(*testing.T, *Store, tenant) // what became of the session since; nil for nothing
		value, overage money.MicroUSD
	}{
		{"what it held fits still", 60, nil, nil, 40, 0},
		{"what it held fits no more", 75, nil, nil, 25, 15},
		{"nothing fits", 100, nil, nil, 0, 40},
		{"it cost more than it held", 10, new(money.MicroUSD(80)), nil, 80, 0},
		{"it cost more than there is", 10, new(money.MicroUSD(200)), nil, 90, 110},
		{"it cost nothing", 100, new(money.MicroUSD(0)), nil, 0, 0},
		{"the session has expired", 10, new(money.MicroUSD(70)), sessionPasses, 40, 30},
		{"the session has ended", 10, new(money.MicroUSD(70)), sessionEnds, 40, 30},
		{"the session has ended, and there is no room", 90, nil, sessionEnds, 10, 30},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
				grant, trail := w.exchange(t, s), w.follow(s)
				begun := w.begin(t, s, grant.AccessToken, 40)
				w.letPass(t, s, begun)
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: test.since}))(t)
				if test.over != nil {
					test.over(t, s, w)
				}
				committed := must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{Value: test.cost}))(t)
				want := begun
				want.Status, want.Late, want.Held, want.Value, want.Overage = Committed, true, 0, test.value, test.overage
				want.Committed, want.Expires = committed.Committed, committed.Expires
				w.wantTransaction(t, s, grant, committed, want)
				if committed.Expires.After(committed.Committed) {
					t.Errorf("it expires at %s, and was committed at %s", committed.Expires, committed.Committed)
				}
				session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				if used := test.since + test.value; session.ValueUsed != used || session.ValueCommitted != used ||
					session.ValueOverage != test.overage || session.ValueHeld != 0 {
					t.Errorf("the session is %+v", session)
				}
				wantLateEvent(t, trail(t), test.value, test.overage)
				_, err := s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{})
				wantError(t, "a second commit", err, &NotPendingError{Committed})
				undone := must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
				if session = must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); !undone.Late || session.ValueUsed != test.since {
					t.Errorf("rolled back to %+v in %+v", undone, session)
				}
			})
		})
	}
}

func sessionPasses(t *testing.T, s *Store, w tenant) {
	t.Helper()
	w.letSessionPass(t, s)
}

func sessionEnds(t *testing.T, s *Store, w tenant) {
	t.Helper()
	must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
}

func wantLateEvent(t *testing.T, events []Event, value, overage money.MicroUSD) {
	t.Helper()
	for _, e := range events {
		if e.Type == "transaction.committed" {
			if !reflect.DeepEqual(e.Data, event.Data{Late: true, Charged: &value, Overage: &overage}) {
				t.Errorf("the event is %+v", e)
			}
			return
		}
	}
	t.Errorf("no commit is among %+v", events)
}

func TestALateCommitIsRepeatedByItsIdempotencyKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		begun := w.begin(t, s, grant.AccessToken, 40)
		w.letPass(t, s, begun)
		first, again := &Idempotency{Key: "k"}, &Idempotency{Key: "k"}
		committed := must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{Idempotency: first}))(t)
		repeated := must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{Idempotency: again}))(t)
		if first.Outcome.Replayed || !again.Outcome.Replayed || !committed.Late || !reflect.DeepEqual(committed, repeated) {
			t.Errorf("%+v, repeated as %+v", committed, repeated)
		}
		usage := w.session.Usage
		usage.ActionCount, usage.ValueUsed = 1, 40
		w.wantUsage(t, s, usage)
	})
}

func TestATransactionWithoutASessionIsCommittedLate(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		grant := w.exchange(t, s)
		begun := must(s.Begin(t.Context(), grant.AccessToken, w.alone(7)))(t)
		w.letPass(t, s, begun)
		late := must(s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{}))(t)
		if !late.Late || late.Value != 7 || late.Overage != 0 {
			t.Errorf("%+v", late)
		}
		list := must(s.Transactions(t.Context(), w.byKey(), Query{Limit: 5, Status: Committed}))(t).Items
		if len(list) != 1 || !list[0].Late {
			t.Errorf("listed are %+v", list)
		}
	})
}

// The end of a session rolls back its pending transactions, however late their commits come.
func TestATransactionThatItsSessionRolledBackIsNotCommittedLate(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		begun := w.begin(t, s, grant.AccessToken, 40)
		ended := must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		past := ended.Add(-time.Hour).UnixMilli()
		must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "e", past-2000).Result())(t)
		must(peek(t, s).HSet(t.Context(), s.keys.Transaction(w.agent.ID, begun.ID), "x", past).Result())(t)
		wantUnchanged(t, s, "a late commit", func() {
			_, err := s.Commit(t.Context(), grant.AccessToken, begun.ID, Commit{})
			wantError(t, "Commit", err, &NotPendingError{RolledBack})
		})
	})
}
