package redisstore

import (
	"maps"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
)

func (w tenant) commit(t *testing.T, s *Store, token AccessToken, value money.MicroUSD) Transaction {
	t.Helper()
	return must(s.Commit(t.Context(), token, w.begin(t, s, token, value).ID, Commit{}))(t)
}

// A charge of a session that holds nothing and has no max_committed runs the commands that it always ran, also after a
// rollback; with max_committed it reads two fields more.
func TestOnlyASessionWithMaxCommittedPaysForIt(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{UsageEvery: time.Hour}, server.URL(), nil) // no other script runs
	info := redistest.PlainClient(t, server.URL())
	plain := map[string]int{"evalsha": 1, "time": 1, "hmget": 2, "hset": 1}
	bounded := map[string]int{"evalsha": 1, "time": 1, "hmget": 3, "hset": 1}
	for name, test := range map[string]struct {
		maxCommitted *money.MicroUSD
		want         map[string]int
	}{"without": {nil, plain}, "with": {new(money.MicroUSD(1000)), bounded}} {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000, MaxCommitted: test.maxCommitted})
		grant := w.exchange(t, s)
		one := w.commit(t, s, grant.AccessToken, 5)
		must(s.Rollback(t.Context(), w.byKey(), one.ID, Rollback{}))(t)
		loadScripts(t, s)
		before := redistest.CommandCounts(t, info)
		must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5}))(t)
		if run := redistest.CommandsRun(t, info, before); !maps.Equal(run, test.want) {
			t.Errorf("%s max_committed: %v, want %v", name, run, test.want)
		}
	}
}

// A begin enters its organization's index, which is in another cell than the agent, before it learns that the token is refused. It takes
// the entry out again, and from then on the token is checked first.
func TestABeginByARevokedAgentLeavesNothingAndSoonWritesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{UsageEvery: time.Hour}, server.URL(), nil) // no other script runs
	info := redistest.PlainClient(t, server.URL())
	w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000})
	token := w.exchange(t, s).AccessToken
	w.begin(t, s, token, 1)
	must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
	loadScripts(t, s)
	held := len(indexed(t, s, s.keys.OrganizationTransactions(w.key.Organization)))
	for name, n := range map[string]NewTransaction{"in a session": w.beginning(1), "alone": w.alone(1)} {
		remembered := s.Remembered(token)
		for times, want := range []map[string]int{{"evalsha": 1, "hmget": 1, "time": 1, "zadd": 1, "zrem": 1}, {"evalsha": 1, "hmget": 1}, {"evalsha": 1, "hmget": 1}} {
			before := redistest.CommandCounts(t, info)
			wantError(t, name, errOf(s.Begin(t.Context(), *remembered, n)), ErrInvalidToken)
			if run := redistest.CommandsRun(t, info, before); !maps.Equal(run, want) {
				t.Errorf("%s, after %d refusals: %v", name, times, run)
			}
		}
	}
	wantEqual(t, "the index", len(indexed(t, s, s.keys.OrganizationTransactions(w.key.Organization))), held)
}

// However much rollbacks refund, scripts can still represent the sum exactly.
func TestRefundsStopWhereTheirSumWouldBecomeInexact(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.Max})
		token := w.exchange(t, s).AccessToken
		one := w.commit(t, s, token, money.Max)
		must(peek(t, s).HSet(t.Context(), s.keys.Session(w.agent.ID, w.session.ID), "gb", int64(mostCounted-5)).Result())(t)
		wantUsed := func(used money.MicroUSD) {
			t.Helper()
			got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
			if got.ValueUsed != used || got.ValueCommitted != mostCounted || got.RemainingValue() != money.Max-used {
				t.Errorf("%+v, want %s used of %s committed", got, used, mostCounted)
			}
		}
		wantUsed(money.Max)
		must(s.Rollback(t.Context(), w.byKey(), one.ID, Rollback{}))(t)
		wantUsed(0)
	})
}
