package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// leasing describes a session of 10 actions and 100 micro-USD that allows leases of up to a minute.
var leasing = NewSession{MaxActions: 10, MaxValue: 100, MaxLease: time.Minute}

func (w tenant) lease(t *testing.T, s *Store, actions int64, value money.MicroUSD) Lease {
	t.Helper()
	n := NewLease{MaxActions: actions, MaxValue: value, Lifetime: time.Minute}
	return must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, n))(t)
}

func (w tenant) settle(t *testing.T, s *Store, id uuid.UUID, actions int64, value money.MicroUSD) Settlement {
	t.Helper()
	return *must(s.SettleLease(t.Context(), w.byKey(), id, NewSettlement{ActionCount: actions, ValueUsed: value}))(t).Settlement
}

// letLeasePass moves what is stored of leases as if their time had been up for a second.
func (w tenant) letLeasePass(t *testing.T, s *Store, leases ...Lease) {
	t.Helper()
	past := time.Now().Add(-time.Second).UnixMilli()
	client := peek(t, s)
	for _, l := range leases {
		must(client.HSet(t.Context(), s.keys.Lease(l.Agent, l.ID), "x", past).Result())(t)
		must(client.ZAddXX(t.Context(), s.keys.Leases(l.Agent, l.Session), redis.Z{Score: float64(past), Member: openLease(l)}).Result())(t)
		must(client.HSet(t.Context(), s.keys.Session(l.Agent, l.Session), "hx", past).Result())(t)
	}
}

func openLease(l Lease) string {
	return string(l.ID[:]) + strconv.FormatInt(l.MaxActions, 10) + " " + strconv.FormatInt(int64(l.MaxValue), 10)
}

// wantState checks how far the tenant's session is used.
func (w tenant) wantState(t *testing.T, s *Store, actions int64, used, held, overage money.MicroUSD) {
	t.Helper()
	got := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
	if got.ActionCount != actions || got.ValueUsed != used || got.ValueHeld != held || got.ValueOverage != overage {
		t.Errorf("the session is %+v, want %d actions, %d used, %d held, %d overage", got, actions, used, held, overage)
	}
}

// A renewal is another object, as a grant is. Beyond the rate it is refused, and the settlement stands.
func TestRenewalsCountInTheRates(t *testing.T) {
	const perSecond = 2
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		caller := byToken(w.exchange(t, s))
		limited, passed := w.withRates(t, s, Rates{Agent: perSecond})
		one := NewLease{Lifetime: time.Minute, MaxValue: 1}
		l := must(limited.GrantLease(t.Context(), caller, w.session.ID, one))(t)
		renewed := NewSettlement{ValueUsed: 1, Renew: &one}
		for n := range perSecond*kernel.BurstTime - 1 {
			next := must(limited.SettleLease(t.Context(), caller, l.ID, renewed))(t).Settlement.Renewed
			if next == nil {
				t.Fatalf("the %d. renewal of a burst is refused", n+1)
			}
			l = *next
		}
		refused := must(limited.SettleLease(t.Context(), caller, l.ID, renewed))(t).Settlement
		if refused.Renewed != nil || refused.Refusal != "rate_limited" || refused.ValueUsed != 1 {
			t.Errorf("too many renewals: %+v", refused)
		}
		w.wantState(t, s, 0, perSecond*kernel.BurstTime, 0, 0)
		passed.Add(int64(time.Second / perSecond))
		must(limited.GrantLease(t.Context(), caller, w.session.ID, one))(t)
	})
}

// A session may be gone when its due leases are ended: then nothing is written, because it would never expire.
func TestTheLeasesOfASessionThatIsGoneLeaveNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.letLeasePass(t, s, w.lease(t, s, 1, 10))
		w.lease(t, s, 1, 10)
		session := s.keys.Session(w.agent.ID, w.session.ID)
		must(peek(t, s).Del(t.Context(), session).Result())(t)
		act := kernel.Actor{Organization: w.key.Organization, Agent: w.agent.ID}
		keys := []string{session, s.keys.Holds(w.agent.ID, w.session.ID), s.keys.Events(w.agent.ID), s.core.AgentKey(act),
			s.keys.Leases(w.agent.ID, w.session.ID), s.keys.AgentHolds(w.agent.ID)}
		must(s.client.Run(t.Context(), kernel.OwnFlow, releaseHolds, keys, s.core.Audit(t.Context(), act)))(t)
		wantGone(t, s, session)
	})
}

// What a lease takes in Redis, open and settled, is about what it is counted as: within a quarter.
func TestALeaseTakesTheMemoryThatIsCountedForIt(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000, MaxValue: 1_000_000_000, MaxLease: time.Minute})
		client := peek(t, s)
		leases := s.keys.Leases(w.agent.ID, w.session.ID)
		for range 50 {
			w.lease(t, s, 1000, 1_000_000)
		}
		index := must(client.MemoryUsage(t.Context(), leases).Result())(t) / 50
		l := w.lease(t, s, 1000, 1_000_000)
		open := must(client.MemoryUsage(t.Context(), s.keys.Lease(w.agent.ID, l.ID)).Result())(t)
		n := NewSettlement{ActionCount: 999, ValueUsed: 999_999, Renew: &NewLease{MaxActions: 1000, MaxValue: 1_000_000, Lifetime: time.Minute}}
		must(s.SettleLease(t.Context(), w.byKey(), l.ID, n))(t)
		settled := must(client.MemoryUsage(t.Context(), s.keys.Lease(w.agent.ID, l.ID)).Result())(t)
		// MemoryUsage leaves out the entries of the key and of its TTL in Redis's tables, about 32 and 40 bytes.
		for what, bytes := range map[string]int64{"an open lease": open + index + 72, "a settled lease": settled + 72} {
			if bytes > kernel.LeaseSize*5/4 || bytes < kernel.LeaseSize*3/4 {
				t.Errorf("%s takes %d bytes, counted are %d", what, bytes, kernel.LeaseSize)
			}
		}
	})
}
