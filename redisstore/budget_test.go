package redisstore

import (
	"fmt"
	"testing"
	"time"

	"remit/money"
	"remit/test/redistest"
)

func (w tenant) commit(t *testing.T, s *Store, token AccessToken, value money.MicroUSD) Transaction {
	t.Helper()
	return must(s.Commit(t.Context(), token, w.begin(t, s, token, value).ID, Commit{}))(t)
}

// A begin enters its organization's index, which is in another cell than the agent, before it learns that the token is refused. It takes
// the entry out again, and from then on the token is checked first.
func TestABeginByARevokedAgentLeavesNothingAndSoonWritesNothing(t *testing.T) {
	t.Parallel()
	s, info := withOwnRedis(t, Config{UsageEvery: time.Hour}) // no other script runs
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
			wantEqual(t, fmt.Sprintf("%s, after %d refusals", name, times), redistest.CommandsRun(t, info, before), want)
		}
	}
	wantEqual(t, "the index", len(indexed(t, s, s.keys.OrganizationTransactions(w.key.Organization))), held)
}

// However much rollbacks refund, scripts can still represent the sum exactly.
func TestRefundsStopWhereTheirSumWouldBecomeInexact(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 10, MaxValue: money.Max}, func(t *testing.T, s *Store, w tenant) {
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
