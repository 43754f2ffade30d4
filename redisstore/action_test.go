package redisstore

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
)

func TestChargeCountsActionsAndValue(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := context.Background()
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 5 * money.USD})
		token := w.exchange(t, s).AccessToken
		for _, caller := range []Caller{w.byKey(), {Token: &token}} {
			if _, err := s.Charge(ctx, caller, w.session.ID, Charge{Count: 2, Value: 1_500_000}); err != nil {
				t.Fatal(err)
			}
		}
		session, err := s.Session(ctx, w.byKey(), w.session.ID)
		if err != nil {
			t.Fatal(err)
		}
		if session.ActionCount != 4 || session.ValueUsed != 3*money.USD || session.Status != Active {
			t.Errorf("after two charges of 2 actions and 1.5 USD: %+v", session)
		}
	})
}

func TestChargeRefusesWhatExceedsALimit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		ctx := context.Background()
		w := newTenant(t, s, NewSession{MaxActions: 3, MaxValue: money.USD})
		for _, test := range []struct {
			charge Charge
			limit  string // "" for what fits
		}{
			{Charge{Count: 1, Value: money.USD + 1}, "max_value_usd"},
			{Charge{Count: 4}, "max_actions"},
			{Charge{Count: 1, Value: money.USD}, ""},
			{Charge{Count: 1, Value: 1}, "max_value_usd"},
			{Charge{Count: 2}, ""},
			{Charge{Count: 1}, "max_actions"},
		} {
			before, err := s.Session(ctx, w.byKey(), w.session.ID)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Charge(ctx, w.byKey(), w.session.ID, test.charge)
			if test.limit == "" && err == nil {
				continue
			}
			var reached *LimitError
			if !errors.As(err, &reached) || reached.Limit != test.limit {
				t.Fatalf("%+v: %v, want %q", test.charge, err, test.limit)
			}
			if reached.Usage != before.Usage {
				t.Errorf("%+v: the refusal says %+v, the session %+v", test.charge, reached.Usage, before.Usage)
			}
		}
	})
}

func TestChargeReturnsTheUsageAfterIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000_000, MaxValue: money.Max})
		want := w.session.Usage
		for _, charge := range []Charge{
			{Count: 1},
			{Count: 1, Value: 1},
			{Count: 1000, Value: 123_456_789_012_345},
			{Count: 3, Value: money.Max - 123_456_789_012_346},
		} {
			want.ActionCount += charge.Count
			want.ValueUsed += charge.Value
			usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, charge))(t)
			read := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			if usage != want || read.Usage != want {
				t.Errorf("after %+v: %+v, read %+v, want %+v", charge, usage, read.Usage, want)
			}
		}
	})
}

func TestValueHeldCountsAgainstTheLimit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 10 * money.USD})
		held := int64(4 * money.USD)
		if err := peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "h", held).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 6*money.USD + 1})
		want := w.session.Usage
		want.ValueHeld = 4 * money.USD
		wantError(t, "what does not fit beside it", err, &LimitError{"max_value_usd", want})
		usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 6 * money.USD}))(t)
		want.ActionCount, want.ValueUsed = 1, 6*money.USD
		if usage != want {
			t.Errorf("%+v, want %+v", usage, want)
		}
	})
}

func TestChargeNeedsAnActiveSession(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Completed, Expired, Revoked} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newSessionThatIs(t, s, status)
				before := w.contents(t, s)
				for _, charge := range []Charge{{Count: 1}, {Count: 101}, {Count: 1, Scope: "admin"}} {
					_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, charge)
					wantError(t, "Charge", err, &NotActiveError{status})
				}
				if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
					t.Errorf("%q became %q", before, after)
				}
			})
		})
	}
}

func TestChargeToAnAgentItselfSaysItsSessionIsOver(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Completed, Expired} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newSessionThatIs(t, s, status)
				_, err := s.Charge(t.Context(), byToken(w.exchange(t, s)), w.session.ID, Charge{Count: 1})
				wantError(t, "Charge", err, &NotActiveError{status})
			})
		})
	}
}

func TestChargeNeedsTheScopeItNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		scopes []string // of the session; its agent has read and write
		held   []string
		not    []string
	}{
		{"a session without scopes of its own", nil, []string{"", "read", "write"}, []string{"admin", "rea", "read:all", "rea."}},
		{"a session with one scope", []string{"write"}, []string{"", "write"}, []string{"read", "admin"}},
		{"a session with no scope", []string{}, []string{""}, []string{"read", "write"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, Scopes: test.scopes})
				for _, caller := range []Caller{w.byKey(), byToken(w.exchange(t, s))} {
					for _, scope := range test.held {
						must(s.Charge(t.Context(), caller, w.session.ID, Charge{Count: 1, Scope: scope}))(t)
					}
					before := w.contents(t, s)
					for _, scope := range test.not {
						_, err := s.Charge(t.Context(), caller, w.session.ID, Charge{Count: 1, Scope: scope})
						wantError(t, "Charge", err, &ScopeError{Scope: scope})
					}
					if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
						t.Errorf("%q became %q", before, after)
					}
				}
			})
		})
	}
}

func TestARefusedChargeChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 5, MaxValue: money.USD})
		foreign := newTenant(t, s, NewSession{MaxActions: 5, MaxValue: money.USD})
		token, revoked := byToken(w.exchange(t, s)), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), revoked.AccessToken, revoked.Family); err != nil {
			t.Fatal(err)
		}
		usage := must(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 3, Value: 400_000}))(t)
		before, foreignBefore := w.contents(t, s), foreign.contents(t, s)
		for _, test := range []struct {
			name    string
			caller  Caller
			session uuid.UUID
			charge  Charge
			want    error
		}{
			{"too many actions", token, w.session.ID, Charge{Count: 3}, &LimitError{"max_actions", usage}},
			{"too much value", token, w.session.ID, Charge{Count: 1, Value: 600_001}, &LimitError{"max_value_usd", usage}},
			{"too many and too much", token, w.session.ID, Charge{Count: 3, Value: money.USD}, &LimitError{"max_actions", usage}},
			{"far too much", token, w.session.ID, Charge{Count: 1, Value: money.Max}, &LimitError{"max_value_usd", usage}},
			{"a scope that is not held", token, w.session.ID, Charge{Count: 1, Scope: "admin"}, &ScopeError{Scope: "admin"}},
			{"a revoked token", byToken(revoked), w.session.ID, Charge{Count: 1}, ErrInvalidToken},
			{"another organization's session", w.byKey(), foreign.session.ID, Charge{Count: 1}, ErrUnknownSession},
			{"another agent's session", token, foreign.session.ID, Charge{Count: 1}, ErrUnknownSession},
			{"an unknown session", token, NewID(w.session.ID), Charge{Count: 1}, ErrUnknownSession},
			{"an unknown session, by key", w.byKey(), NewID(w.session.ID), Charge{Count: 1}, ErrUnknownSession},
			{"an unknown session in another cell", token, otherCell(w.session.ID), Charge{Count: 1}, ErrUnknownSession},
		} {
			got, err := s.Charge(t.Context(), test.caller, test.session, test.charge)
			wantError(t, test.name, err, test.want)
			if got != (Usage{}) {
				t.Errorf("%s: %+v", test.name, got)
			}
		}
		after := w.contents(t, s)
		session := after[s.keys.Session(w.agent.ID, w.session.ID)].(map[string]string)
		if session["w"] != "NV" {
			t.Errorf("the marks are %q: each limit refused something for the first time", session["w"])
		}
		delete(session, "w") // nothing but these
		if !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
		if after := foreign.contents(t, s); !reflect.DeepEqual(after, foreignBefore) {
			t.Errorf("%q became %q", foreignBefore, after)
		}
	})
}

// Charges at once from two instances of the service fill a session to the last action or micro-dollar, and not beyond.
// Not on miniredis: under the race detector a script takes it milliseconds, and 64 at once would outlast their timeout.
func TestChargesAtOnceFillALimitExactly(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	for _, test := range []struct {
		name    string
		session NewSession
		charges []Charge // from large to small
	}{
		{"actions", NewSession{MaxActions: 1_003, MaxValue: money.Max},
			[]Charge{{Count: 17, Value: 3}, {Count: 5, Value: 1_000_001}, {Count: 1, Value: 7}}},
		{"value", NewSession{MaxActions: 1_000_000, MaxValue: 1_000_003},
			[]Charge{{Count: 1, Value: 9_973}, {Count: 3, Value: 101}, {Count: 2, Value: 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, test.session)
				second := must(Open(s.config))(t)
				defer second.Close()
				token := byToken(w.exchange(t, s))

				var count, value atomic.Int64 // acknowledged
				var wg sync.WaitGroup
				for i := range 64 {
					store, caller := s, token
					if i%2 == 1 {
						store = second
					}
					if i%4 > 1 {
						caller = w.byKey()
					}
					wg.Go(func() {
						for _, charge := range test.charges {
							for chargeFits(t, store, caller, w.session.ID, charge) {
								count.Add(charge.Count)
								value.Add(int64(charge.Value))
							}
						}
					})
				}
				wg.Wait()

				usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
				if usage.ActionCount != count.Load() || usage.ValueUsed != money.MicroUSD(value.Load()) {
					t.Errorf("%d actions and %s USD were acknowledged, and %+v is stored",
						count.Load(), money.MicroUSD(value.Load()), usage)
				}
				if usage.ActionCount != usage.MaxActions && usage.ValueUsed != usage.MaxValue {
					t.Errorf("neither limit is filled: %+v", usage)
				}
				if usage.ActionCount > usage.MaxActions || usage.ValueUsed > usage.MaxValue {
					t.Errorf("a limit is exceeded: %+v", usage)
				}
			})
		})
	}
}

// chargeFits charges the session, and says whether it had room.
func chargeFits(t *testing.T, s *Store, caller Caller, session uuid.UUID, charge Charge) bool {
	usage, err := s.Charge(context.Background(), caller, session, charge)
	if reached := new(LimitError); errors.As(err, &reached) {
		return false
	}
	if err != nil {
		t.Error(err)
		return false
	}
	if usage.ActionCount > usage.MaxActions || usage.ValueUsed > usage.MaxValue {
		t.Errorf("beyond a limit: %+v", usage)
	}
	return true
}

func TestAChargeIsOneWrite(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{UsageEvery: time.Hour}, server.URL(), nil) // no other script runs
	info := redistest.PlainClient(t, server.URL())
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100 * money.USD})
	token := byToken(w.exchange(t, s))
	charge, scoped := Charge{Count: 1, Value: 10}, Charge{Count: 1, Value: 10, Scope: "read"}
	loadScripts(t, s)
	if _, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1000}); err == nil {
		t.Fatal("too many actions are charged") // and the audit trail has the first refusal
	}
	const charges = 10
	for _, test := range []struct {
		name   string
		caller Caller
		charge Charge
		want   map[string]int
	}{
		{"by token", token, charge, map[string]int{"evalsha": 1, "time": 1, "hmget": 2, "hset": 1}},
		{"with a scope", token, scoped, map[string]int{"evalsha": 1, "time": 1, "hmget": 2, "hget": 2, "hset": 1}},
		{"by key", w.byKey(), charge, map[string]int{"evalsha": 2, "time": 2, "hmget": 3, "hget": 1, "hset": 1}},
		{"refused", token, Charge{Count: 1000}, map[string]int{"evalsha": 1, "time": 1, "hmget": 2, "hget": 1}},
	} {
		before := redistest.CommandCounts(t, info)
		for range charges {
			_, _ = s.Charge(t.Context(), test.caller, w.session.ID, test.charge)
		}
		for command := range test.want {
			test.want[command] *= charges
		}
		if run := redistest.CommandsRun(t, info, before); !maps.Equal(run, test.want) {
			t.Errorf("%s, %d times: %v, want %v", test.name, charges, run, test.want)
		}
	}
}
