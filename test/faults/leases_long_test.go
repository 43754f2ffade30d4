//go:build long

package faults

import (
	"testing"

	"remit/internal/redisproc"
)

// roomyHolders is more than holders charge in a scenario.
const roomyHolders = 1_000_000

// Holders go on with what they hold while their instance is down, and settle it with the next one, each lease once.
func TestLeasesOfAKilledInstanceAreSettledOnce(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t, redisproc.Config{}, Setup{})
	h := s.StartHolders(3, roomyHolders)
	for n := range rounds(4) {
		h.AwaitGranted(300)
		s.Instances[n%2].Kill()
		s.AwaitAcknowledged(100) // the other one goes on
		s.Restart(n % 2)
		s.AwaitRecovery()
	}
	h.AwaitGranted(300)
	h.Finish()
	s.Finish()
}

// With appendfsync always no grant and no settlement is lost, whenever Redis is killed.
func TestRedisKilledUnderLeasesLosesNoSettlement(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{Fsync: "always"}, Setup{})
	h := s.StartHolders(3, roomyHolders)
	for range rounds(3) {
		h.AwaitGranted(300)
		redis.Kill()
		redis.Start()
		s.AwaitRecovery()
	}
	h.Kill() // one more holder with a lease, and all that came before is in the usage
	h.AwaitGranted(300)
	h.Finish()
	s.Finish()
}

// With --durability=replicated a failover loses no grant and no settlement.
func TestSentinelFailoverLosesNoSettlement(t *testing.T) {
	t.Parallel()
	w := StartSentinelGroup(t, 2)
	s := New(t, Setup{URL: w.Sentinels.URL(), Servers: w.Addrs(), Args: []string{"--durability=replicated"}})
	h := s.StartHolders(3, roomyHolders)
	failOverBothWays(s, w)
	h.AwaitGranted(300)
	h.Finish()
	s.Finish()
}
