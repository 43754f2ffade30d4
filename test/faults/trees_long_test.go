//go:build long

package faults

import (
	"math/rand/v2"
	"testing"

	"remit/internal/redisproc"
)

// With appendfsync always nothing of a tree is lost, whenever Redis is killed.
func TestTreesAreExactThoughRedisIsKilled(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{Fsync: "always"}, Setup{Workers: 2})
	w := s.StartTrees(6)
	for range rounds(20) {
		w.AwaitCalls(10 + rand.Int64N(100))
		redis.Kill()
		redis.Start()
		s.AwaitRecovery()
	}
	finishTrees(s, w)
}

// With --durability=replicated nothing of a tree is lost with the primary.
func TestTreesAreExactThoughRedisFailsOver(t *testing.T) {
	t.Parallel()
	group := StartSentinelGroup(t, 2)
	s := New(t, Setup{URL: group.Sentinels.URL(), Servers: group.Addrs(), Args: []string{"--durability=replicated"}})
	w := s.StartTrees(6)
	failOverBothWays(s, group)
	finishTrees(s, w)
}

// A tree lies on several servers, so a failover meets it between any two steps: the parent's server has the one, and the child's has not
// had the other. An instance dies with each primary. With --durability=replicated nothing is lost all the same. A primary that was
// frozen comes back with what it had not answered.
func TestTreesAreExactThoughClusterPrimariesAreReplaced(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	s := New(t, Setup{URL: c.URL(), Servers: c.Addrs, Workers: 2, Args: []string{"--durability=replicated"}})
	w := s.StartTrees(6)
	for n := range rounds(4) {
		takeAway, bringBack := (*Cluster).Kill, (*Cluster).Restart
		if n%2 == 1 {
			takeAway, bringBack = (*Cluster).Freeze, (*Cluster).Thaw
		}
		w.AwaitCalls(50 + rand.Int64N(100))
		primary := c.PrimaryOf(c.SlotOf(w.AgentID(n)))
		takeAway(c, primary)
		s.Instances[n%2].Kill()
		c.AwaitPromotion(primary)
		bringBack(c, primary) // until then its successor has no replica to confirm a write
		c.AwaitReplica(primary)
		s.Restart(n % 2)
		s.awaitEveryAgent()
	}
	finishTrees(s, w)
}

// finishTrees checks the trees when everything that they have set aside was asked for, and then the rest.
func finishTrees(s *Scenario, w *Trees) {
	w.AwaitCalls(100)
	w.NeedParts()
	w.Finish()
	s.Finish()
}
