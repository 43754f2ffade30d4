package faults

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// troubles counts the calls since a time that were answered 503, by their code.
func (s *Scenario) troubles(since time.Duration) map[string]int {
	count := map[string]int{}
	for _, c := range s.History.Calls() {
		if c.Began >= since && c.Status == 503 {
			count[c.Code]++
		}
	}
	return count
}

// A slot that moves is some milliseconds on two nodes, of which neither can run a script then that has keys on both.
func TestSlotsThatMoveUnderLoadLoseNothing(t *testing.T) {
	c := StartCluster(t)
	s := New(t, Setup{URL: c.URL(), Servers: c.Addrs})
	began, keys, moves := s.History.Now(), 0, 0
	for round := range rounds(4) {
		if round%2 == 1 {
			c.ForgetScripts() // a slot comes to a node that has never seen the scripts
		}
		s.Acknowledged(200)
		for _, agent := range s.World.Agents {
			slot := c.SlotOf(agent)
			keys += c.Move(slot, (c.PrimaryOf(slot)+1)%primaries)
			moves++
		}
		s.FaultOver()
	}
	s.Rest()
	troubles := s.troubles(began)
	t.Logf("%d moves of slots with %d keys together; 503: %v", moves, keys, troubles)
	if troubles["outcome_unknown"] > 0 {
		t.Errorf("%d calls are in doubt, though no answer was lost", troubles["outcome_unknown"])
	}
	s.Finish()
}

// lostByReplication are the rules that a write may break which was acknowledged by a primary and had not reached its
// replica: replication is asynchronous. No other may be broken.
var lostByReplication = []Rule{RuleLost, RuleMissing, RuleKey, RuleRevoked, RuleSuccessors, RuleLive, RuleSettled, RuleStatus, RuleDenied}

func TestAPrimaryOfAClusterThatIsKilledIsReplacedAndComesBackAsAReplica(t *testing.T) {
	wantReplaced(t, (*Cluster).Kill, (*Cluster).Restart)
}

// A frozen primary still takes connections and requests, and answers none.
func TestAPrimaryOfAClusterThatIsFrozenIsReplacedAndComesBackAsAReplica(t *testing.T) {
	wantReplaced(t, (*Cluster).Freeze, (*Cluster).Thaw)
}

// wantReplaced takes the primary of an agent away and brings it back.
func wantReplaced(t *testing.T, takeAway, bringBack func(c *Cluster, node int)) {
	t.Helper()
	c := StartCluster(t)
	s := New(t, Setup{URL: c.URL(), Servers: c.Addrs})
	for range rounds(1) {
		s.Acknowledged(200)
		primary := c.PrimaryOf(c.SlotOf(s.World.Agents[0]))
		gone := time.Now()
		takeAway(c, primary)
		c.AwaitPromotion(primary)
		promoted := time.Since(gone)
		t.Logf("promoted after %v, every agent served %v after that", promoted.Round(time.Millisecond), s.everyAgentServed().Round(time.Millisecond))
		s.Acknowledged(200)
		bringBack(c, primary)
		c.AwaitReplica(primary)
		s.everyAgentServed()
		s.Acknowledged(200)
	}
	lost := map[Rule]int{}
	for _, v := range s.Violations() {
		if slices.Contains(lostByReplication, v.Rule) {
			lost[v.Rule]++
			t.Log(v)
			continue
		}
		t.Error(v)
	}
	t.Logf("lost by asynchronous replication: %v", lost)
}

// everyAgentServed is FaultOver for a cluster, in which one agent may be served and another not.
func (s *Scenario) everyAgentServed() time.Duration {
	s.t.Helper()
	took := make([]time.Duration, len(s.Instances)*len(s.World.Agents))
	var all sync.WaitGroup
	for at := range took {
		all.Go(func() { took[at] = s.served(s.Instances[at%len(s.Instances)], at/len(s.Instances)) })
	}
	all.Wait()
	s.recovery = append(s.recovery, slices.Max(took))
	return slices.Max(took)
}

// served returns how long it took until the instance acknowledged a charge of the agent. It asks anew before the last
// answer, which may be a timeout.
func (s *Scenario) served(i *Instance, agent int) time.Duration {
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
