package redisstore

import (
	"testing"
	"time"

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

// A short hold does not shorten the time for which a long one is stored, nor does the closing of a child.
func TestALongHoldThatIsSpentOutlivesAShortOne(t *testing.T) {
	onTenantOf(t, Config{Retention: time.Second}, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Minute}, func(t *testing.T, s *Store, w tenant) {
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
		wantError(t, "closed", errOf(s.Commit(t.Context(), token, spent.ID, Commit{})), &NotPendingError{Committed})
	})
}

// A session that has ended is stored as long as it holds something that is spent when it expires, however soon others are forgotten.
func TestASessionIsKeptForAHoldThatIsSpent(t *testing.T) {
	onTenantOf(t, Config{Retention: time.Second}, NewSession{MaxActions: 10, MaxValue: 100, Lifetime: 2 * time.Second}, func(t *testing.T, s *Store, w tenant) {
		spent, _ := w.spending(t, s, 20)
		w.end(t, s, w.session.ID)
		for _, key := range []string{s.keys.Session(w.agent.ID, w.session.ID), s.keys.Leases(w.agent.ID, w.session.ID), s.keys.Transaction(w.agent.ID, spent.ID)} {
			if left := peek(t, s).PTTL(t.Context(), key).Val(); left < time.Minute-10*time.Second {
				t.Errorf("%s is kept for %v", key, left)
			}
		}
	})
}
