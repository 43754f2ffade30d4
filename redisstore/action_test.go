package redisstore

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/test/redistest"
)

func TestAChargeIsOneWrite(t *testing.T) {
	t.Parallel()
	s, info := withOwnRedis(t, Config{UsageEvery: time.Hour}) // no other script runs
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100 * money.USD})
	committing := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100 * money.USD, MaxCommitted: new(100 * money.USD)})
	for _, of := range []tenant{w, committing} { // a charge costs nothing more after a rollback
		one := of.commit(t, s, of.exchange(t, s).AccessToken, 5)
		must(s.Rollback(t.Context(), of.byKey(), one.ID, Rollback{}))(t)
	}
	token := byToken(w.exchange(t, s))
	charge, scoped := Charge{Count: 1, Value: 10}, Charge{Count: 1, Value: 10, Scope: "read"}
	var batch []BatchCharge
	for range 3 {
		session := w.newSession(t, s, time.Hour)
		batch = append(batch, BatchCharge{session.ID, charge}, BatchCharge{session.ID, charge})
	}
	charges := func(c Caller, session uuid.UUID, n Charge) func() {
		return func() { _, _ = s.Charge(t.Context(), c, session, n) }
	}
	batches := func(c Caller) func() { return func() { _, _ = s.ChargeBatch(t.Context(), c, batch, nil) } }
	loadScripts(t, s)
	if _, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1000}); err == nil {
		t.Fatal("too many actions are charged") // and the audit trail has the first refusal
	}
	const times = 10
	for _, test := range []struct {
		name string
		do   func()
		want map[string]int
	}{
		{"by token", charges(token, w.session.ID, charge), map[string]int{"evalsha": 1, "time": 1, "hmget": 2, "hset": 1}},
		{"with a scope", charges(token, w.session.ID, scoped), map[string]int{"evalsha": 1, "time": 1, "hmget": 2, "hget": 2, "hset": 1}},
		{"by key", charges(w.byKey(), w.session.ID, charge), map[string]int{"evalsha": 2, "time": 2, "hmget": 3, "hget": 1, "hset": 1}},
		{"with max_committed", charges(byToken(committing.exchange(t, s)), committing.session.ID, charge), map[string]int{"evalsha": 1, "time": 1, "hmget": 3, "hset": 1}},
		{"refused", charges(token, w.session.ID, Charge{Count: 1000}), map[string]int{"evalsha": 1, "time": 1, "hmget": 2, "hget": 1}},
		// A batch is one write for each of its sessions, and by key reads whose they are.
		{"a batch by token", batches(token), map[string]int{"evalsha": 3, "time": 3, "hmget": 6, "hset": 3}},
		{"a batch by key", batches(w.byKey()), map[string]int{"evalsha": 4, "time": 4, "hmget": 10, "hset": 3}},
	} {
		before := redistest.CommandCounts(t, info)
		for range times {
			test.do()
		}
		for command := range test.want {
			test.want[command] *= times
		}
		wantEqual(t, test.name, redistest.CommandsRun(t, info, before), test.want)
	}
}
