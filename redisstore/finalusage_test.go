package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
)

// What is used restarts with the period, to the millisecond; what is reserved stays, and counts in the period in which its
// session closes. A clock that goes back across the boundary turns nothing.
func TestABudgetsPeriodTurns(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	day := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	month := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	for period, turn := range map[BudgetPeriod]struct{ at, next time.Time }{
		BudgetDay: {day, day.AddDate(0, 0, 1)}, BudgetMonth: {month, month.AddDate(0, 1, 0)}, BudgetForever: {month, time.Time{}},
	} {
		t.Run(string(period), func(t *testing.T) {
			t.Parallel()
			mini := miniredis.RunT(t)
			s := openStore(t, Config{}, "redis://"+mini.Addr(), nil)
			mini.SetTime(turn.at.Add(-time.Millisecond))
			w := newTenant(t, s, NewSession{MaxActions: 1})
			root := func(value money.MicroUSD) (Session, error) {
				return s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 9, MaxValue: value, Lifetime: 90 * 24 * time.Hour})
			}
			spend := func(session Session, value money.MicroUSD) {
				t.Helper()
				must(s.Charge(t.Context(), w.byKey(), session.ID, Charge{Count: 1, Value: value}))(t)
				must(s.EndSession(t.Context(), w.byKey(), session.ID))(t)
			}
			want := func(when string, reserved, used money.MicroUSD) OrganizationBudget {
				t.Helper()
				is := must(s.Budget(t.Context(), w.key))(t)
				if is.Reserved != reserved || is.Used != used {
					t.Errorf("%s, %s is reserved and %s used; want %s and %s", when, is.Reserved, is.Used, reserved, used)
				}
				return is
			}
			must(s.SetBudget(t.Context(), w.key, 100, period))(t)
			stays := must(root(50))(t)
			spend(must(root(50))(t), 30)
			want("before the turn", 50, 30)
			_, err := root(21)
			var exhausted *BudgetError
			if !errors.As(err, &exhausted) || exhausted.Remaining != 20 || (period != BudgetForever && !exhausted.Resets.Equal(turn.at)) {
				t.Errorf("beyond what remains: %v, %+v", err, exhausted)
			}

			mini.SetTime(turn.at)
			before := money.MicroUSD(0)
			if period == BudgetForever {
				before = 30
			} else if is := want("after the turn", 50, 0); !is.Started.Equal(turn.at) || !is.Resets.Equal(turn.next) {
				t.Errorf("the period is %s to %s", is.Started, is.Resets)
			}
			if _, err = root(51 - before); !errors.As(err, &exhausted) || exhausted.Remaining != 50-before {
				t.Errorf("beyond what is not reserved: %v", err)
			}
			spend(stays, 20)
			want("when the session from before has closed", 0, 20+before)
			mini.SetTime(turn.at.Add(-time.Second))
			want("when the clock goes back", 0, 20+before)
			if _, err = root(81 - before); !errors.As(err, &exhausted) {
				t.Errorf("beyond what remains, with the clock back: %v", err)
			}
		})
	}
}

// The end of a tree needs no memory: it frees some. So it works when Redis is full, and nothing is lost on the way.
func TestASessionClosesThoughRedisIsFull(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	admin := redistest.PlainClient(t, server.URL())
	w := newTenant(t, s, NewSession{MaxActions: 1})
	must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
	root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 50, MaxValue: 100, Lifetime: time.Hour}))(t)
	early, late := w.child(t, s, root.ID, 10, 40), w.child(t, s, root.ID, 10, 40)
	below := w.child(t, s, late.ID, 5, 20)
	for _, session := range []Session{root, early, late, below} {
		must(s.Charge(t.Context(), w.byKey(), session.ID, Charge{Count: 1, Value: 3}))(t)
	}
	isFull.begin(t, admin)
	_, err := s.Charge(t.Context(), w.byKey(), root.ID, Charge{Count: 1, Value: 1})
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("a charge of a full Redis: %v", err)
	}
	w.end(t, s, early.ID)
	w.wantUsed(t, s, root.ID, 2, 6, Delegated{10, 40})
	w.end(t, s, root.ID)
	w.wantUsed(t, s, late.ID, 2, 6, Delegated{})
	w.wantUsed(t, s, root.ID, 4, 12, Delegated{})
	if is := must(s.Budget(t.Context(), w.key))(t); is.Reserved != 0 || is.Used != 12 {
		t.Errorf("the budget is %+v", is)
	}
	isFull.end(t, admin)
	w.wantUsed(t, s, root.ID, 4, 12, Delegated{})
}

// The parent has taken what a child has used, so no late step may change either.
func TestNothingChangesTheUsageOfAClosedSession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 50, MaxValue: 500, MaxLease: time.Minute})
		parent := w.session
		w.session = must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: parent.ID, MaxActions: 20,
			MaxValue: 200, Lifetime: 30 * time.Minute, MaxLease: time.Minute}))(t)
		token := w.exchange(t, s).AccessToken
		committed, pending, passed := w.commit(t, s, token, 10), w.begin(t, s, token, 20), w.begin(t, s, token, 30)
		lease := w.lease(t, s, 4, 40)
		w.letPass(t, s, passed)
		w.letLeasePass(t, s, lease)
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		letItClose(t, s, place{w.session.ID, w.agent.ID})
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		const actions, used = 3 + 4, 10 + 40 // three begins, and a lease that counts as spent
		final := func(when string) {
			t.Helper()
			t.Log(when)
			w.wantUsed(t, s, w.session.ID, actions, used, Delegated{})
			w.wantUsed(t, s, parent.ID, actions, used, Delegated{})
			for _, id := range []uuid.UUID{w.session.ID, parent.ID} {
				if is := must(s.Session(t.Context(), w.byKey(), id))(t); is.ValueOverage != 0 || is.ValueHeld != 0 {
					t.Errorf("%s over and %s held", is.ValueOverage, is.ValueHeld)
				}
			}
		}
		final("closed")
		var status *NotPendingError
		if _, err := s.Commit(t.Context(), token, passed.ID, Commit{Value: new(money.MicroUSD(300))}); !errors.As(err, &status) {
			t.Errorf("a late commit: %v", err)
		}
		final("after a late commit")
		if _, err := s.Commit(t.Context(), token, pending.ID, Commit{}); !errors.As(err, &status) {
			t.Errorf("a commit of what the end rolled back: %v", err)
		}
		_, _ = s.Rollback(t.Context(), w.byKey(), committed.ID, Rollback{}) // whatever it answers
		final("after a rollback of a commit")
		_, _ = s.SettleLease(t.Context(), w.byKey(), lease.ID, NewSettlement{ActionCount: 1, ValueUsed: 5})
		final("after a settlement that would return some")
		_, _ = s.SettleLease(t.Context(), w.byKey(), lease.ID, NewSettlement{ActionCount: 9, ValueUsed: 90})
		final("after a settlement of more")
		if _, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{AddValue: new(money.MicroUSD(1))}); err == nil {
			t.Error("limits of a closed session were raised")
		}
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		final("after another end")
	})
}

// A refusal is the outcome of its key, like every refusal by a limit, so that a repetition never spends what an earlier answer
// denied. The refused request has given back what was over, so the next one finds the room.
func TestARefusedRequestWithAKeyStaysRefusedAndMakesRoomForTheNext(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 50, MaxValue: 100})
		over := w.child(t, s, w.session.ID, 10, 90)
		must(s.Charge(t.Context(), w.byKey(), over.ID, Charge{Count: 1, Value: 5}))(t)
		if err := s.endOne(t.Context(), w.key.Organization, place{over.ID, over.Agent}); err != nil { // and it is not settled
			t.Fatal(err)
		}
		client := peek(t, s)
		must(client.ZAddXX(t.Context(), s.keys.Looks(w.session.ID, w.session.ID), redis.Z{Member: string(over.ID[:])}).Result())(t) // its first look is due
		charge := func(key string) (Usage, bool, error) {
			idem := &Idempotency{Key: key}
			usage, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 60, Idempotency: idem})
			return usage, idem.Outcome.Replayed, err
		}
		var limit *LimitError
		if _, again, err := charge("one"); again || !errors.As(err, &limit) || limit.Limit != "max_value_usd" {
			t.Errorf("at first: %v, %t", err, again)
		}
		w.wantUsed(t, s, w.session.ID, 1, 5, Delegated{})
		if _, again, err := charge("one"); !again || !errors.As(err, &limit) {
			t.Errorf("repeated: %v, %t", err, again)
		}
		w.wantUsed(t, s, w.session.ID, 1, 5, Delegated{})
		if usage, _, err := charge("two"); err != nil || usage.ValueUsed != 65 {
			t.Errorf("with another key: %+v, %v", usage, err)
		}
		if _, again, err := charge("one"); !again || !errors.As(err, &limit) {
			t.Errorf("repeated after that: %v, %t", err, again)
		}
		w.wantUsed(t, s, w.session.ID, 2, 65, Delegated{})
	})
}

// A whole branch that a crash left ended and unsettled comes back to the request that needs it: within a minute, however deep it is.
func TestABranchThatACrashLeftUnsettledComesBackWithinAMinute(t *testing.T) {
	t.Parallel()
	needs := map[string]func(*testing.T, *Store, tenant, Session) error{
		"to its parent": func(t *testing.T, s *Store, w tenant, root Session) error {
			_, err := s.Charge(t.Context(), w.byKey(), root.ID, Charge{Count: 1, Value: 96})
			return err
		},
		"to the budget": func(t *testing.T, s *Store, w tenant, root Session) error {
			if err := s.endOne(t.Context(), w.key.Organization, place{root.ID, root.Agent}); err != nil {
				return err
			}
			_, err := s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 96, Lifetime: time.Minute})
			return err
		},
	}
	const expired = 40 * 24 * time.Hour // a session that is over is kept for less
	for name, test := range map[string]struct {
		to      string
		silence time.Duration
	}{
		"to its parent": {"to its parent", onItsWay}, "to the budget": {"to the budget", onItsWay},
		"to its parent, after weeks": {"to its parent", expired}, "to the budget, after weeks": {"to the budget", expired},
	} {
		need, silence := needs[test.to], test.silence
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
				w := newTenant(t, s, NewSession{MaxActions: 1})
				must(s.SetBudget(t.Context(), w.key, 100, BudgetForever))(t)
				root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 50, MaxValue: 100, Lifetime: 100 * 24 * time.Hour}))(t)
				branch := []Session{root}
				for range mostLevels - 1 {
					branch = append(branch, w.child(t, s, branch[len(branch)-1].ID, 20, 80))
				}
				leaf := branch[len(branch)-1]
				must(s.Charge(t.Context(), w.byKey(), leaf.ID, Charge{Count: 1, Value: 4}))(t)
				for _, one := range branch[1:] {
					if err := s.endOne(t.Context(), w.key.Organization, place{one.ID, one.Agent}); err != nil { // and it is not settled
						t.Fatal(err)
					}
				}
				step(silence)
				var err error
				for waited := time.Duration(0); waited < time.Minute; waited += lookPause {
					if err = need(t, s, w, root); err == nil {
						break
					}
					step(silence + waited + lookPause)
				}
				if err != nil {
					t.Errorf("after a minute: %v", err)
				}
				w.wantUsed(t, s, branch[1].ID, 1, 4, Delegated{})
			})
		})
	}
}
