package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// spending begins a transaction in the tenant's session whose hold is spent when it expires, after a minute.
func (w tenant) spending(t *testing.T, s *Store, value money.MicroUSD) (Transaction, AccessToken) {
	t.Helper()
	n := w.beginning(value)
	n.SpentOnExpiry, n.Lifetime = true, time.Minute
	token := w.exchange(t, s).AccessToken
	return must(s.Begin(t.Context(), token, n))(t), token
}

// wantSpent checks what the tenant's session has used and holds, and what it has used of the action type.
func (w tenant) wantSpent(t *testing.T, s *Store, what string, used, held money.MicroUSD) {
	t.Helper()
	if is := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); is.ValueUsed != used || is.ValueHeld != held {
		t.Errorf("%s: %d used and %d held; want %d and %d", what, is.ValueUsed, is.ValueHeld, used, held)
	}
	var typed money.MicroUSD
	for _, of := range must(s.SessionUsage(t.Context(), w.byKey(), w.session.ID))(t) {
		if of.ActionType == "order.place" {
			typed = of.Value
		}
	}
	if typed != used {
		t.Errorf("%s: %d used of the type; want %d", what, typed, used)
	}
}

// wantSettled checks a transaction as it is read and listed.
func (w tenant) wantSettled(t *testing.T, s *Store, what string, id uuid.UUID, status Status, value money.MicroUSD, byExpiry bool) {
	t.Helper()
	read := must(s.Transaction(t.Context(), w.byKey(), id))(t)
	listed := must(s.Transactions(t.Context(), w.byKey(), Query{Limit: 10}))(t).Items
	for _, is := range append(listed, read) {
		if is.ID == id && (is.Status != status || is.Value != value || is.SettledByExpiry != byExpiry || !is.SpentOnExpiry || is.Late && byExpiry) {
			t.Errorf("%s: it is %+v; want %s, %d, settled by expiry: %t", what, is, status, value, byExpiry)
		}
	}
	if found := must(s.Transactions(t.Context(), w.byKey(), Query{Limit: 10, SettledByExpiry: true}))(t).Items; (len(found) == 1) != byExpiry {
		t.Errorf("%s: %d are listed as settled by expiry", what, len(found))
	}
}

// Whatever becomes of its session and its agent, a hold that is spent on expiry is held until then.
func TestAHoldThatIsSpentOutlivesItsSession(t *testing.T) {
	t.Parallel()
	for what, over := range map[string]func(t *testing.T, s *Store, w tenant){
		"nothing":           func(*testing.T, *Store, tenant) {},
		"the session ends":  func(t *testing.T, s *Store, w tenant) { w.end(t, s, w.session.ID) },
		"the agent revoked": func(t *testing.T, s *Store, w tenant) { must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t) },
		"suspended":         func(t *testing.T, s *Store, w tenant) { must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t) },
	} {
		withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
			w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
			spent, _ := w.spending(t, s, 20)
			w.wantSpent(t, s, what+", begun", 0, 20)
			over(t, s, w)
			step(30 * time.Second)
			w.wantSpent(t, s, what+", before", 0, 20)
			w.wantSettled(t, s, what+", before", spent.ID, Pending, 0, false)
			step(61 * time.Second)
			w.wantSpent(t, s, what+", after", 20, 0)
			w.wantSettled(t, s, what+", after", spent.ID, Committed, 20, true)
			w.wantEvents(t, s, "transaction.committed", 1)
			step(30 * time.Second)
			w.wantSpent(t, s, what+", and the clock goes back", 20, 0)
		})
	}
}

// Holds that are spent leave their session's leases their number.
func TestHoldsThatAreSpentAreNoLeases(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000, MaxLease: time.Minute})
		var spent Transaction
		var token AccessToken
		for range 100 {
			spent, token = w.spending(t, s, 1)
		}
		lease := w.lease(t, s, 1, 7)
		w.settle(t, s, lease.ID, 1, 3)
		w.wantUsage(t, s, Usage{ActionCount: 101, MaxActions: 1000, ValueUsed: 3, MaxValue: 1000, ValueHeld: 100, Expires: w.session.Expires})
		must(s.Commit(t.Context(), token, spent.ID, Commit{}))(t)
		w.wantUsage(t, s, Usage{ActionCount: 101, MaxActions: 1000, ValueUsed: 4, MaxValue: 1000, ValueHeld: 99, Expires: w.session.Expires})
	})
}

// What a hold counts in the agent's day is given back on that day only.
func TestAHoldThatIsSpentCountsInTheDayOfItsAgent(t *testing.T) {
	t.Parallel()
	for _, later := range []bool{false, true} {
		fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
			w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 1000})
			n := w.beginning(60)
			n.SpentOnExpiry, n.Lifetime = true, time.Hour
			token := w.exchange(t, s).AccessToken
			spent := must(s.Begin(t.Context(), token, n))(t)
			w.wantToday(t, s, "begun", 60)
			_, err := s.Begin(t.Context(), token, w.beginning(50))
			wantAgentLimit(t, "a second one", err, LimitValuePerDay)
			clock(2 * time.Hour)
			w.wantToday(t, s, "spent", 60)
			want := money.MicroUSD(45)
			if later {
				clock(25 * time.Hour)
				token = w.exchange(t, s).AccessToken
				want = 0
			}
			must(s.Commit(t.Context(), token, spent.ID, Commit{Value: new(money.MicroUSD(45))}))(t)
			w.wantToday(t, s, "corrected", want)
			must(s.Rollback(t.Context(), w.byKey(), spent.ID, Rollback{}))(t)
			w.wantToday(t, s, "rolled back", 0)
		})
	}
}

// What a commit gives back to the agent's day, its rollback does not give back again.
func TestACommitOfNothingIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 1000})
		if err := w.chargeValue(t, s, 50); err != nil {
			t.Fatal(err)
		}
		spent, token := w.spending(t, s, 50)
		w.wantToday(t, s, "begun", 100)
		must(s.Commit(t.Context(), token, spent.ID, Commit{Value: new(money.MicroUSD(0))}))(t)
		w.wantToday(t, s, "committed", 50)
		must(s.Rollback(t.Context(), w.byKey(), spent.ID, Rollback{}))(t)
		w.wantToday(t, s, "rolled back", 50)
	})
}

// A short hold does not shorten the time for which a long one is stored, nor does the closing of a child.
func TestALongHoldThatIsSpentOutlivesAShortOne(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: time.Second}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Minute})
		child := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 10, Lifetime: time.Minute}))(t)
		token := w.exchange(t, s).AccessToken
		for _, lasts := range []time.Duration{time.Hour, time.Second} {
			n := w.beginning(1)
			n.SpentOnExpiry, n.Lifetime = true, lasts
			must(s.Begin(t.Context(), token, n))(t)
		}
		w.end(t, s, w.session.ID)
		w.end(t, s, child.ID) // it is closed, and its part dropped
		for _, key := range []string{s.keys.Session(w.agent.ID, w.session.ID), s.keys.Leases(w.agent.ID, w.session.ID)} {
			if left := peek(t, s).PTTL(t.Context(), key).Val(); left < 50*time.Minute {
				t.Errorf("%s is kept for %v", key, left)
			}
		}
	})
}

// A session closes after its holds that are spent when they expire.
func TestASessionClosesAfterAHoldThatIsSpent(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		parent := w.session
		child := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: parent.ID, MaxActions: 10, MaxValue: 50, Lifetime: time.Hour}))(t)
		w.session = child
		spent, token := w.spending(t, s, 20)
		w.end(t, s, child.ID)
		settle := func() { s.settleBelow(t.Context(), w.key.Organization, place{parent.ID, w.agent.ID}) }
		w.session = parent
		for _, at := range []time.Duration{15 * time.Second, 61 * time.Second, 75 * time.Second} {
			step(at)
			settle()
			w.wantUsed(t, s, parent.ID, 0, 0, Delegated{10, 50})
		}
		must(s.Commit(t.Context(), token, spent.ID, Commit{Value: new(money.MicroUSD(12))}))(t)
		step(95 * time.Second)
		settle()
		w.wantUsed(t, s, parent.ID, 1, 12, Delegated{})
		_, err := s.Commit(t.Context(), token, spent.ID, Commit{})
		wantError(t, "closed", err, &NotPendingError{Committed})
	})
}

// A session that has ended is stored as long as it holds something that is spent when it expires, however soon others are forgotten.
func TestASessionIsKeptForAHoldThatIsSpent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: time.Second}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, Lifetime: 2 * time.Second})
		spent, _ := w.spending(t, s, 20)
		w.end(t, s, w.session.ID)
		for _, key := range []string{s.keys.Session(w.agent.ID, w.session.ID), s.keys.Leases(w.agent.ID, w.session.ID), s.keys.Transaction(w.agent.ID, spent.ID)} {
			if left := peek(t, s).PTTL(t.Context(), key).Val(); left < time.Minute-10*time.Second {
				t.Errorf("%s is kept for %v", key, left)
			}
		}
	})
}
