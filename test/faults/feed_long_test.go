//go:build long

package faults

import (
	"fmt"
	"os"
	"testing"
	"time"

	"remit/test/suite"
)

const (
	// feedRate is how many changes a second the scenario of a feed asks for.
	feedRate = 2000
	// idleShare is what share of its processors a machine has idle that does nothing else.
	idleShare = 0.9
)

// 100 agents, each in a cell of its own, are changed 2,000 times a second through two instances. Every two seconds the leader of the
// feed is killed, one of the three Redis servers that hold the agents is killed, and slots move: that of the organization, in which its
// feed is, and those of agents.
func TestAFeedIsCompleteThoughLeadersAndRedisAreKilledAndSlotsMove(t *testing.T) {
	t.Parallel()
	idle, known := idleFor(time.Second)
	c := StartCluster(t)
	for node := range c.Addrs {
		c.keepEveryWrite(node)
	}
	f := StartFeed(t, FeedSetup{URL: c.URL(), Agents: 100, Rate: feedRate})
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
			slot := c.SlotOf(id)
			keys += c.Move(slot, (c.PrimaryOf(slot)+1)%primaries)
		}
		time.Sleep(time.Until(next))
	}
	f.StopChanges()
	rate := f.Rate(f.began, f.ended)
	t.Logf("%.0f changes a second were acknowledged of %d that were asked for, without a fault %.0f; before, processors were idle for %.0f%%",
		rate, feedRate, f.Rate(began, ended), 100*idle)
	measures := known && !suite.RaceDetector && idle >= idleShare // otherwise the machine has other work, and times say nothing of the service
	if measures && rate < feedRate*0.95 {
		t.Errorf("an idle machine had %.0f changes a second, want %d", rate, feedRate)
	}
	f.Finish()
	t.Logf("%d leaders were killed in %v; slots moved with %d keys", leaders, f.ended.Sub(ended).Round(time.Second), keys)
	if leaders < rounds(10)/2 {
		t.Errorf("only %d of the instances killed led", leaders)
	}
	delays := f.feedDelays(began.Add(time.Second), ended.Add(-time.Second)) // the leader that was killed first had the last of them
	if len(delays) < calm/4 {
		t.Fatalf("%d changes without a fault, %d delays", calm, len(delays))
	}
	p50, p99 := delays[len(delays)/2], delays[len(delays)*99/100]
	t.Logf("without a fault %d changes in %v: events came after %v, p99 %v", calm, ended.Sub(began).Round(time.Millisecond), p50, p99)
	if measures && p99 >= time.Second {
		t.Errorf("p99 of the delay is %v, want less than a second", p99)
	}
}

// idleFor returns for what share of this time the machine's processors were idle, and false if it does not say.
func idleFor(pause time.Duration) (share float64, known bool) {
	before, known := processorTimes()
	if !known {
		return 0, false
	}
	time.Sleep(pause)
	after, known := processorTimes()
	all, idle := 0.0, after[3]-before[3]+after[4]-before[4] // of it, those in which it waited for its disk
	for i := range after {
		all += after[i] - before[i]
	}
	return idle / all, known && all > 0
}

// processorTimes returns the times of Linux's /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func processorTimes() (times [8]float64, known bool) {
	stat, err := os.Open("/proc/stat")
	if err != nil {
		return times, false
	}
	defer stat.Close()
	fields := make([]any, len(times))
	for i := range times {
		fields[i] = &times[i]
	}
	_, err = fmt.Fscanf(stat, "cpu %f %f %f %f %f %f %f %f", fields...)
	return times, err == nil
}

// keepEveryWrite has a node sync each write before it answers, and its replica never replace it: it comes back with everything.
func (c *Cluster) keepEveryWrite(node int) {
	c.t.Helper()
	waitUntil(c.t, promotionPatience, "the node keeps every write", func() bool { // its connection may have ended with an earlier process
		return c.nodes[node].ConfigSet(c.t.Context(), "appendfsync", "always").Err() == nil &&
			c.nodes[node].ConfigSet(c.t.Context(), "cluster-replica-no-failover", "yes").Err() == nil
	})
}
