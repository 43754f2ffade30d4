package redisstore

import (
	"testing"
	"time"

	"remit/redisstore/internal/kernel"
)

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
