package redisstore

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

func TestAChangeOfAHoldByAnotherChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100}), newTenant(t, s, NewSession{MaxActions: 10})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		begun := w.begin(t, s, grant.AccessToken, 40)
		for _, test := range []struct {
			name  string
			token AccessToken
			id    uuid.UUID
			to    NewHold
			want  error
		}{
			{"an unknown transaction", grant.AccessToken, NewID(w.agent.ID), NewHold{Value: new(money.MicroUSD(1))}, ErrUnknownTransaction},
			{"another agent's", foreign.exchange(t, s).AccessToken, begun.ID, NewHold{Value: new(money.MicroUSD(1))}, ErrUnknownTransaction},
			{"by a revoked family", dead.AccessToken, begun.ID, NewHold{Value: new(money.MicroUSD(1))}, ErrInvalidToken},
		} {
			wantUnchanged(t, s, test.name, func() {
				changed, err := s.ChangeHold(t.Context(), test.token, test.id, test.to)
				wantError(t, test.name, err, test.want)
				if changed != (Transaction{}) {
					t.Errorf("%s: %+v", test.name, changed)
				}
			})
		}
	})
}

// Extending a transaction also extends the keys that are read with it.
func TestMoreTimeKeepsWhatIsReadWithTheTransaction(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		token := w.exchange(t, s).AccessToken
		begun := w.begin(t, s, token, 40)
		agent, session := w.agent.ID, w.session.ID
		must(s.ChangeHold(t.Context(), token, begun.ID, NewHold{Lifetime: new(20 * 24 * time.Hour)}))(t)
		must(s.ChangeHold(t.Context(), token, begun.ID, NewHold{Lifetime: new(time.Hour)}))(t) // which shortens nothing
		for _, key := range []string{s.keys.Transaction(agent, begun.ID), s.keys.Session(agent, session), s.keys.Holds(agent, session),
			s.keys.SessionTransactions(agent, session), s.keys.AgentTransactions(agent), s.keys.AgentSessions(agent)} {
			left := must(peek(t, s).PTTL(t.Context(), key).Result())(t)
			if want := 20*24*time.Hour + s.config.Retention; left < want-time.Minute || left > want {
				t.Errorf("%s is kept for %s, want %s", key, left, want)
			}
		}
	})
}

// A hold is released when its last expiry has passed, whichever way that was moved, and not before.
func TestAHoldIsReleasedAtItsLastExpiry(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		token := w.exchange(t, s).AccessToken
		extended, shortened, other := w.begin(t, s, token, 30), w.begin(t, s, token, 20), w.begin(t, s, token, 1)
		key := &Idempotency{Key: "longer"}
		for range 2 { // a repetition moves nothing again
			must(s.ChangeHold(t.Context(), token, extended.ID, NewHold{Lifetime: new(24 * time.Hour), Idempotency: key}))(t)
		}
		if !key.Outcome.Replayed {
			t.Error("the repetition was no replay")
		}
		must(s.ChangeHold(t.Context(), token, shortened.ID, NewHold{Lifetime: new(50 * time.Millisecond)}))(t)
		w.wantHoldsAsStored(t, s)
		eventually(t, "the shortened hold is released", func() bool {
			return must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).ValueHeld == 31
		})
		w.letPass(t, s, other) // as if the first expiry of the extended one had passed too
		w.wantUsage(t, s, Usage{MaxActions: 10, ActionCount: 3, MaxValue: 100, ValueHeld: 30, Expires: w.session.Expires})
		due := must(peek(t, s).HGet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "hx").Int64())(t)
		read := must(s.Transaction(t.Context(), Caller{Token: &token}, extended.ID))(t)
		if read.Status != Pending || due != read.Expires.UnixMilli() {
			t.Errorf("%s until %s, the next hold is due at %s", read.Status, read.Expires, time.UnixMilli(due))
		}
		if committed := must(s.Commit(t.Context(), token, extended.ID, Commit{}))(t); committed.Late || committed.Value != 30 {
			t.Errorf("committed as %+v", committed)
		}
	})
}

func TestManyRaisesAtOnceStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		token := w.exchange(t, s).AccessToken
		all := make([]Transaction, 20)
		for i := range all {
			all[i] = w.begin(t, s, token, 1)
		}
		var group sync.WaitGroup
		for _, begun := range all {
			group.Go(func() {
				for value := money.MicroUSD(2); value <= 10; value++ {
					_, _ = s.ChangeHold(t.Context(), token, begun.ID, NewHold{Value: &value})
				}
			})
		}
		group.Wait()
		session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		if session.ValueHeld > 100 || session.ValueHeld < 90 { // holds of 10 leave no room for another step
			t.Errorf("%s is held of 100", session.ValueHeld)
		}
		w.wantHoldsAsStored(t, s)
	})
}

func TestTopUpsAtOnceAllCount(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				_, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{AddActions: new(int64(2)), AddValue: new(money.MicroUSD(3))})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		w.wantUsage(t, s, Usage{MaxActions: 50, MaxValue: 160, Expires: w.session.Expires})
	})
}

func TestARepeatedChangeOfLimitsDoesNotReopenASession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		change := NewLimits{Lifetime: new(time.Hour), Idempotency: &Idempotency{Key: "longer"}}
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, change))(t)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, change))(t)
		if open := must(peek(t, s).ZCard(t.Context(), s.keys.OrganizationOpen(w.key.Organization)).Result())(t); open != 0 || !change.Idempotency.Outcome.Replayed {
			t.Errorf("%d sessions are open after the end, want 0; replayed %t", open, change.Idempotency.Outcome.Replayed)
		}
	})
}
