//go:build long

package faults

import (
	"math/rand/v2"
	"testing"

	"remit/redisproc"
)

func TestTreesAreExactAfter200Kills(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}, Workers: 2})
	w := s.StartTrees(6)
	killInstances(s, w, rounds(200))
	w.NeedParts()
	w.Finish()
	for _, kind := range []Kind{Create, TopUp, End} {
		if n := w.BrokenOff(kind); n == 0 {
			t.Errorf("no %s was broken off", kind)
		}
	}
	s.Finish()
}

// With appendfsync always nothing of a tree is lost, whenever Redis is killed.
func TestTreesAreExactThoughRedisIsKilled(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{Fsync: "always"})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}, Workers: 2})
	w := s.StartTrees(6)
	for range rounds(20) {
		w.AwaitCalls(10 + rand.IntN(100))
		redis.Kill()
		redis.Start()
		s.AwaitRecovery()
	}
	w.AwaitCalls(100)
	w.NeedParts()
	w.Finish()
	s.Finish()
}

// With --durability=replicated nothing of a tree is lost with the primary.
func TestTreesAreExactThoughRedisFailsOver(t *testing.T) {
	group := StartSentinelGroup(t, 2)
	s := New(t, Setup{URL: group.Sentinels.URL(), Servers: group.Addrs(), Args: []string{"--durability=replicated"}})
	w := s.StartTrees(6)
	failOverBothWays(s, group)
	w.AwaitCalls(100)
	w.NeedParts()
	w.Finish()
	s.Finish()
}
