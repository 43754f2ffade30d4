//go:build long

package faults

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// lostByReplication are the rules that a failover may break, because replication is asynchronous: an acknowledged write may
// not have reached the replica yet. No other rule may be broken.
var lostByReplication = []Rule{RuleLost, RuleMissing, RuleKey, RuleRevoked, RuleSuccessors, RuleLive, RuleBothEnds, RuleStatus, RuleDenied}

func TestKilledClusterPrimaryIsReplacedAndReturnsAsReplica(t *testing.T) {
	t.Parallel()
	wantReplaced(t, (*Cluster).Kill, (*Cluster).Restart)
}

// A frozen primary still accepts connections and requests but answers none.
func TestFrozenClusterPrimaryIsReplacedAndReturnsAsReplica(t *testing.T) {
	t.Parallel()
	wantReplaced(t, (*Cluster).Freeze, (*Cluster).Thaw)
}

// wantReplaced removes the primary of an agent and brings it back.
func wantReplaced(t *testing.T, takeAway, bringBack func(c *Cluster, node int)) {
	t.Helper()
	c := StartCluster(t)
	s := New(t, Setup{URL: c.URL(), Servers: c.Addrs})
	for range rounds(1) {
		s.AwaitAcknowledged(200)
		primary := c.PrimaryOf(c.SlotOf(s.Fixture.Agents[0].ID))
		removed := time.Now()
		takeAway(c, primary)
		c.AwaitPromotion(primary)
		promoted := time.Since(removed)
		t.Logf("promoted after %v, every agent served %v after that", promoted.Round(time.Millisecond), s.awaitEveryAgent().Round(time.Millisecond))
		s.AwaitAcknowledged(200)
		bringBack(c, primary)
		c.AwaitReplica(primary)
		s.awaitEveryAgent()
		s.AwaitAcknowledged(200)
	}
	s.finishWith(lostByReplication)
}

// awaitEveryAgent is AwaitRecovery for a cluster, in which each agent recovers with its own primary.
func (s *Scenario) awaitEveryAgent() time.Duration {
	s.t.Helper()
	took := make([]time.Duration, len(s.Instances)*len(s.Fixture.Agents))
	var all sync.WaitGroup
	for at := range took {
		all.Go(func() { took[at] = s.awaitServed(s.Instances[at%len(s.Instances)], at/len(s.Instances)) })
	}
	all.Wait()
	s.recovery = append(s.recovery, slices.Max(took))
	return slices.Max(took)
}

// awaitServed returns how long it took until the instance acknowledged a charge of the agent. It does not wait for one
// answer before it sends the next charge, because an answer may be a timeout.
func (s *Scenario) awaitServed(i *Instance, agent int) time.Duration {
	s.t.Helper()
	began, served := time.Now(), make(chan struct{})
	var asking sync.WaitGroup
	defer asking.Wait()
	var once sync.Once
	for {
		asking.Go(func() {
			if s.acknowledges(i, agent) {
				once.Do(func() { close(served) })
			}
		})
		select {
		case <-served:
			return time.Since(began)
		case <-time.After(200 * time.Millisecond):
		}
		if took := time.Since(began); took > 6*RecoveryLimit {
			s.t.Errorf("%v after the fault agent %d is not served: %s", took, agent, Summary(s.History.Calls()))
			return took
		}
	}
}
