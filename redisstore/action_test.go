package redisstore

import (
	"maps"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
)

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
