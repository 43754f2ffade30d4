package redisstore

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/test/redistest"
)

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
	wantEqual(t, "what it holds", fields["h"], strconv.Itoa(sum))
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
	wantEqual(t, "how many events "+kind, count, want)
}

// One call releases at most 500, so no script runs for long; the operation is done once, after the last of them.
func TestManyHoldsThatAreDueAreReleasedInBoundedSteps(t *testing.T) {
	t.Parallel()
	s, info := withOwnRedis(t, Config{EventsKept: 10_000, UsageEvery: time.Hour}) // no other script runs
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
			wantEqual(t, "the commands", run, want)
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

func TestARevokedCallerReleasesNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		foreign, grant, dead := newTenant(t, s, roomy), w.exchange(t, s), w.exchange(t, s)
		mustDo(t, s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family))
		w.letPass(t, s, w.begin(t, s, grant.AccessToken, 60))
		strangers := []Caller{byToken(dead), foreign.byKey(), byToken(foreign.exchange(t, s))}
		wantUnchanged(t, s, "a stranger", func() {
			for i, want := range []error{ErrInvalidToken, ErrUnknownSession, ErrUnknownSession} {
				wantError(t, "a stranger", errOf(s.Charge(t.Context(), strangers[i], w.session.ID, Charge{Count: 1})), want)
			}
		})
	})
}
