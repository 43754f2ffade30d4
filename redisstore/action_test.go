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

func TestASessionOfARevokedAgentIsNotCharged(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newSessionThatIs(t, s, Revoked)
		before := w.contents(t, s)
		for _, charge := range []Charge{{Count: 1}, {Count: 101}, {Count: 1, Scope: "admin"}} {
			_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, charge)
			wantError(t, "Charge", err, &NotActiveError{Revoked})
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
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
