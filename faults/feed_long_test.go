//go:build long

package faults

import (
	"testing"
	"time"
)

// 100 agents, each in a cell of its own, are changed 2,000 times a second through two instances. Every two seconds the leader of the
// feed is killed, one of the three Redis servers that hold the agents is killed, and slots move: that of the organization, in which its
// feed is, and those of agents.
func TestAFeedIsCompleteThoughLeadersAndRedisAreKilledAndSlotsMove(t *testing.T) {
	c := StartCluster(t)
	for node := range c.Addrs {
		c.keepEveryWrite(node)
	}
	f := StartFeed(t, FeedSetup{URL: c.URL(), Agents: 100, Rate: 2000})
	began := time.Now()
	time.Sleep(5 * time.Second) // without a fault, to see how fast events come
	ended := time.Now()
	calm, leaders, keys := f.Acknowledged(), 0, 0
	for n := range rounds(10) {
		next := time.Now().Add(2 * time.Second)
		if f.KillLeader(n) {
			leaders++
		}
		c.Kill(n % primaries)
		c.Restart(n % primaries)
		c.keepEveryWrite(n % primaries)
		c.awaitServing()
		for _, id := range []string{f.Organization, f.agents[n%len(f.agents)], f.agents[(n+50)%len(f.agents)]} {
			slot := c.SlotOf(&Agent{ID: id})
			keys += c.Move(slot, (c.PrimaryOf(slot)+1)%primaries)
		}
		time.Sleep(time.Until(next))
	}
	wantFaultsNamed(t, f.Finish())
	t.Logf("%d leaders were killed; slots moved with %d keys", leaders, keys)
	if leaders < rounds(10)/2 {
		t.Errorf("only %d of the instances killed led", leaders)
	}
	delays := f.feedDelays(began.Add(time.Second), ended.Add(-time.Second)) // the leader that was killed first had the last of them
	if len(delays) < calm/4 {
		t.Fatalf("%d changes without a fault, %d delays", calm, len(delays))
	}
	p50, p99 := delays[len(delays)/2], delays[len(delays)*99/100]
	t.Logf("without a fault %d changes in %v: events came after %v, p99 %v", calm, ended.Sub(began).Round(time.Millisecond), p50, p99)
	if p99 >= time.Second {
		t.Errorf("p99 of the delay is %v, want less than a second", p99)
	}
}

// keepEveryWrite has a node sync each write before it answers, and its replica never replace it: it comes back with everything.
func (c *Cluster) keepEveryWrite(node int) {
	c.t.Helper()
	c.await("node that keeps every write", func() bool { // its connection may have ended with an earlier process
		return c.nodes[node].ConfigSet(c.t.Context(), "appendfsync", "always").Err() == nil &&
			c.nodes[node].ConfigSet(c.t.Context(), "cluster-replica-no-failover", "yes").Err() == nil
	})
}

// awaitServing returns when all primaries serve all slots.
func (c *Cluster) awaitServing() {
	c.t.Helper()
	c.await("serving cluster", func() bool {
		for node := range primaries {
			if !c.says(c.nodes[node], "CLUSTER INFO", "cluster_state:ok") || !c.says(c.nodes[node], "INFO replication", "role:master") {
				return false
			}
		}
		return true
	})
}
