package redisstore

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
)

// sessionOperations are all operations on a session, which release its due holds: each on a tenant with a
// pending transaction and two that are due.
var sessionOperations = map[string]func(*testing.T, *Store, tenant, Grant, Transaction) error{
	"Session": func(t *testing.T, s *Store, w tenant, _ Grant, _ Transaction) error {
		_, err := s.Session(t.Context(), w.byKey(), w.session.ID)
		return err
	},
	"Charge": func(t *testing.T, s *Store, w tenant, g Grant, _ Transaction) error {
		_, err := s.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 1, Value: 90})
		return err
	},
	"ChargeBatch": func(t *testing.T, s *Store, w tenant, g Grant, _ Transaction) error {
		outcomes, err := s.ChargeBatch(t.Context(), byToken(g), []BatchCharge{{w.session.ID, Charge{Count: 1, Value: 90}}}, nil)
		if err != nil {
			return err
		}
		return outcomes[0].Err
	},
	"Begin": func(t *testing.T, s *Store, w tenant, g Grant, _ Transaction) error {
		_, err := s.Begin(t.Context(), g.AccessToken, w.beginning(90))
		return err
	},
	"Commit": func(t *testing.T, s *Store, _ tenant, g Grant, pending Transaction) error {
		cost := money.MicroUSD(100)
		committed, err := s.Commit(t.Context(), g.AccessToken, pending.ID, Commit{Value: &cost})
		if committed.Value != cost {
			t.Errorf("committed %+v", committed)
		}
		return err
	},
	"ChangeHold": func(t *testing.T, s *Store, _ tenant, g Grant, pending Transaction) error {
		_, err := s.ChangeHold(t.Context(), g.AccessToken, pending.ID, NewHold{Value: new(money.MicroUSD(100))})
		return err
	},
	"Rollback": func(t *testing.T, s *Store, w tenant, _ Grant, pending Transaction) error {
		_, err := s.Rollback(t.Context(), w.byKey(), pending.ID, Rollback{})
		return err
	},
	"EndSession": func(t *testing.T, s *Store, w tenant, _ Grant, _ Transaction) error {
		_, err := s.EndSession(t.Context(), w.byKey(), w.session.ID)
		return err
	},
	"ChangeLimits": func(t *testing.T, s *Store, w tenant, _ Grant, _ Transaction) error {
		_, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxValue: new(money.MicroUSD(10))})
		return err
	},
}

func TestEveryOperationOnASessionReleasesDueHolds(t *testing.T) {
	t.Parallel()
	for name, operate := range sessionOperations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
				grant := w.exchange(t, s)
				pending := w.begin(t, s, grant.AccessToken, 10)
				due := []Transaction{w.begin(t, s, grant.AccessToken, 40), w.begin(t, s, grant.AccessToken, 50)}
				w.letPass(t, s, due...)
				if err := operate(t, s, w, grant, pending); err != nil {
					t.Fatal(err)
				}
				for _, one := range due {
					if read := must(s.Transaction(t.Context(), byToken(grant), one.ID))(t); read.Status != Expired || read.Held != 0 {
						t.Errorf("%+v", read)
					}
				}
				session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				if over := map[string]money.MicroUSD{"Session": 10, "Charge": 10, "ChargeBatch": 10, "Begin": 100, "ChangeHold": 100, "ChangeLimits": 10}; session.ValueHeld != over[name] {
					t.Errorf("%s is held, want %s", session.ValueHeld, over[name])
				}
				w.wantHoldsAsStored(t, s)
				w.wantEvents(t, s, "transaction.expired", 2)
			})
		})
	}
}

// wantHoldsAsStored checks that what a session is said to hold is the sum of its open holds, and that none of them becomes
// due unseen.
func (w tenant) wantHoldsAsStored(t *testing.T, s *Store) {
	t.Helper()
	fields := must(peek(t, s).HGetAll(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
	holds := must(peek(t, s).ZRangeWithScores(t.Context(), s.keys.Holds(w.agent.ID, w.session.ID), 0, -1).Result())(t)
	sum := 0
	for _, hold := range holds {
		sum += must(strconv.Atoi(hold.Member.(string)[16:]))(t)
	}
	if len(holds) == 0 {
		if fields["h"] != "" || fields["hx"] != "" {
			t.Errorf("without a hold, it holds %q until %q", fields["h"], fields["hx"])
		}
		return
	}
	if fields["h"] != strconv.Itoa(sum) {
		t.Errorf("it holds %q, its holds are %d", fields["h"], sum)
	}
	if until := must(strconv.ParseFloat(fields["hx"], 64))(t); until > holds[0].Score {
		t.Errorf("the next check of its holds is at %.0f, the first is due at %.0f", until, holds[0].Score)
	}
}

// wantEvents checks how often something stands in the audit trail of the tenant's agent.
func (w tenant) wantEvents(t *testing.T, s *Store, kind string, want int) {
	t.Helper()
	count := 0
	for _, entry := range must(peek(t, s).XRange(t.Context(), s.keys.Events(w.agent.ID), "-", "+").Result())(t) {
		if entry.Values["type"] == kind {
			count++
		}
	}
	if count != want {
		t.Errorf("%d events %s, want %d", count, kind, want)
	}
}

// One call releases at most 500, so no script runs for long; the operation is done once, after the last of them.
func TestManyHoldsThatAreDueAreReleasedInBoundedSteps(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{EventsKept: 10_000, UsageEvery: time.Hour}, server.URL(), nil) // no other script runs
	info := redistest.PlainClient(t, server.URL())
	for due, steps := range map[int]int{1: 1, 499: 1, 500: 1, 501: 2, 1200: 3} {
		t.Run(fmt.Sprint(due), func(t *testing.T) {
			w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100_000})
			token := byToken(w.exchange(t, s))
			w.holdFor(t, s, due, time.Now().Add(-time.Minute))
			w.holdFor(t, s, 3, time.Now().Add(time.Hour))
			must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "h", 7*(due+3), "hx", 1).Result())(t)
			loadScripts(t, s)
			before := redistest.CommandCounts(t, info)
			usage := must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1, Value: 5}))(t)
			run := redistest.CommandsRun(t, info, before)
			if usage.ActionCount != 1 || usage.ValueHeld != 21 || usage.ValueUsed != 5 {
				t.Errorf("charged to %+v", usage)
			}
			want := map[string]int{
				"evalsha": 2*steps + 1, "time": 2*steps + 1, "hmget": 2*(steps+1) + 2*steps + 1, "hset": steps + 1, "hdel": steps,
				"exists":        steps,
				"zrangebyscore": steps, "zrange": steps, "zrem": due, "xadd": due,
			}
			if !maps.Equal(run, want) {
				t.Errorf("%v, want %v", run, want)
			}
			w.wantHoldsAsStored(t, s)
			w.wantEvents(t, s, "transaction.expired", due)
		})
	}
}

// holdFor writes holds of 7 of transactions that do not exist, past the store.
func (w tenant) holdFor(t *testing.T, s *Store, holds int, until time.Time) {
	t.Helper()
	members := make([]redis.Z, holds)
	for i := range members {
		id := NewID(w.agent.ID)
		members[i] = redis.Z{Score: float64(until.UnixMilli()), Member: string(id[:]) + "7"}
	}
	must(peek(t, s).ZAdd(t.Context(), s.keys.Holds(w.agent.ID, w.session.ID), members...).Result())(t)
}

// What expired holds an operation met stays released though it is refused then.
func TestARefusedOperationStillReleasesDueHolds(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		due := w.begin(t, s, grant.AccessToken, 60)
		w.letPass(t, s, due)
		_, err := s.Rollback(t.Context(), byToken(grant), due.ID, Rollback{})
		wantError(t, "Rollback of what is due", err, &NotPendingError{Expired})
		w.wantHoldsAsStored(t, s)
		second := w.begin(t, s, grant.AccessToken, 60)
		w.letPass(t, s, second)
		usage := w.session.Usage
		usage.ActionCount = 2
		_, err = s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 101})
		wantError(t, "Charge", err, &LimitError{"max_value_usd", usage})
		w.wantHoldsAsStored(t, s)
	})
}

// When Redis's clock goes back, what was released by time reads as pending again: it holds nothing, and counts as expired.
func TestAHoldThatIsReleasedStaysSoThoughTheClockGoesBack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		other, due := w.begin(t, s, grant.AccessToken, 10), w.begin(t, s, grant.AccessToken, 60)
		w.letPass(t, s, due)
		usage := w.session.Usage
		usage.ActionCount, usage.ValueHeld = 2, 10
		w.wantUsage(t, s, usage) // which releases what is due
		ahead := time.Now().Add(time.Hour).UnixMilli()
		must(peek(t, s).HSet(t.Context(), s.keys.Transaction(w.agent.ID, due.ID), "x", ahead).Result())(t)
		for name, settle := range map[string]func() (Transaction, error){
			"ChangeHold": func() (Transaction, error) {
				return s.ChangeHold(t.Context(), grant.AccessToken, due.ID, NewHold{Value: new(money.MicroUSD(1))})
			},
			"Rollback":        func() (Transaction, error) { return s.Rollback(t.Context(), byToken(grant), due.ID, Rollback{}) },
			"Rollback by key": func() (Transaction, error) { return s.Rollback(t.Context(), w.byKey(), due.ID, Rollback{}) },
		} {
			wantUnchanged(t, s, name, func() {
				_, err := settle()
				wantError(t, name, err, &NotPendingError{Expired})
			})
		}
		w.wantHoldsAsStored(t, s)
		late := must(s.Commit(t.Context(), grant.AccessToken, due.ID, Commit{}))(t)
		if !late.Late || late.Value != 60 || late.Expires != late.Committed {
			t.Errorf("committed as %+v, want late", late)
		}
		if read := must(s.Transaction(t.Context(), byToken(grant), due.ID))(t); !reflect.DeepEqual(read, late) {
			t.Errorf("it reads %+v, was committed as %+v", read, late)
		}
		must(s.Commit(t.Context(), grant.AccessToken, other.ID, Commit{}))(t)
		usage.ValueUsed, usage.ValueHeld = 70, 0
		w.wantUsage(t, s, usage)
		w.wantHoldsAsStored(t, s)
	})
}

func TestARevokedCallerReleasesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100}), newTenant(t, s, NewSession{MaxActions: 1})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		w.letPass(t, s, w.begin(t, s, grant.AccessToken, 60))
		for _, caller := range []Caller{byToken(dead), foreign.byKey(), byToken(foreign.exchange(t, s))} {
			wantUnchanged(t, s, "a stranger", func() {
				if _, err := s.Charge(t.Context(), caller, w.session.ID, Charge{Count: 1}); err == nil {
					t.Error("a stranger charges")
				}
			})
		}
	})
}

func TestTheHoldsOfASessionThatIsOverAreReleasedToo(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, status := range []Status{Expired, Revoked} {
			w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
			w.letPass(t, s, w.begin(t, s, w.exchange(t, s).AccessToken, 60))
			if status == Expired {
				w.letSessionPass(t, s)
			} else {
				must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
			}
			if session := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t); session.Status != status || session.ValueHeld != 0 {
				t.Errorf("%+v", session)
			}
		}
	})
}
