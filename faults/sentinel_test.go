package faults

import (
	"slices"
	"testing"
	"time"
)

// failOver hurts the primary while the fleet works, waits until the service is back, heals it, and waits until it follows
// the new one.
func failOver(s *Scenario, w *Watched, hurt, heal func(*Redis)) {
	primary := w.Primary()
	s.Acknowledged(100)
	hurt(primary)
	began := time.Now()
	w.Promoted(primary)
	agreed := time.Since(began)
	s.t.Logf("the sentinels agreed after %v, the service was back %v later", agreed.Round(time.Millisecond), s.FaultOver().Round(time.Millisecond))
	s.Acknowledged(50)
	heal(primary)
	w.InStep(primary)
	s.FaultOver()
}

// failOverBothWays has the primary killed, and then the next one frozen: that keeps its connections, and what was sent to
// it, and takes itself for the primary when it wakes.
func failOverBothWays(s *Scenario, w *Watched) {
	for range rounds(1) {
		failOver(s, w, (*Redis).Kill, (*Redis).Start)
		failOver(s, w, (*Redis).Freeze, (*Redis).Thaw)
	}
	s.Acknowledged(100)
}

// With --durability=replicated nothing that was acknowledged is lost with the primary. There are two replicas: one must be
// left to confirm.
func TestSentinelFailoverLosesNothingThatAReplicaConfirmed(t *testing.T) {
	w := StartWatched(t, 2)
	s := New(t, Setup{URL: w.Sentinels.URL(), Servers: w.Addrs(), Args: []string{"--durability=replicated"}})
	failOverBothWays(s, w)
	s.Finish()
}

// lossRules are those that are broken when what was acknowledged is lost, and nothing else is wrong.
var lossRules = []Rule{RuleLost, RuleSurplus, RuleKey, RuleRevoked, RuleSuccessors, RuleLive, RuleSettled, RuleStatus,
	RuleDenied, RuleMissing}

// By default replication is asynchronous: the last moments before a failover may be lost. How much it is, is told; but no
// limit is exceeded, and the service comes back.
func TestSentinelFailoverWithOneReplicaComesBackWithinItsLimits(t *testing.T) {
	w := StartWatched(t, 1)
	s := New(t, Setup{URL: w.Sentinels.URL(), Servers: w.Addrs()})
	failOverBothWays(s, w)
	lost := 0
	for _, v := range s.Violations() {
		if !slices.Contains(lossRules, v.Rule) {
			t.Error(v)
			continue
		}
		lost++
		t.Log(v)
	}
	t.Logf("rules broken by what asynchronous replication lost: %d", lost)
}
