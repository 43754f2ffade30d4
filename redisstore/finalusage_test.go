package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

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
			return errOf(s.Charge(t.Context(), w.byKey(), root.ID, Charge{Count: 1, Value: 96}))
		},
		"to the budget": func(t *testing.T, s *Store, w tenant, root Session) error {
			if err := s.endOne(t.Context(), w.key.Organization, place{root.ID, root.Agent}); err != nil {
				return err
			}
			return errOf(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, MaxValue: 96, Lifetime: time.Minute}))
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
