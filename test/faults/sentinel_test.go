package faults

import (
	"testing"
	"time"

	"remit/test/suite"
)

// failOver breaks the primary, waits until the service has recovered, repairs the old primary, and waits until it is a
// replica of the new one.
func failOver(s *Scenario, w *SentinelGroup, breakIt, repair func(*Redis)) {
	primary := w.Primary()
	s.AwaitAcknowledged(100)
	breakIt(primary)
	began := time.Now()
	w.AwaitPromotion(primary)
	agreed := time.Since(began)
	s.t.Logf("the sentinels agreed after %v, the service recovered %v later", agreed.Round(time.Millisecond), s.AwaitRecovery().Round(time.Millisecond))
	s.AwaitAcknowledged(50)
	repair(primary)
	w.AwaitReplicas(primary)
	s.AwaitRecovery()
}

// failOverBothWays kills the primary and, in the long run, freezes the next one. A frozen primary keeps its connections and
// unread commands, and still believes that it is the primary when it resumes.
func failOverBothWays(s *Scenario, w *SentinelGroup) {
	for range rounds(1) {
		failOver(s, w, (*Redis).Kill, (*Redis).Start)
		if suite.Long {
			failOver(s, w, (*Redis).Freeze, (*Redis).Thaw)
		}
	}
	s.AwaitAcknowledged(100)
}

// With --durability=replicated no acknowledged write is lost with the primary. This takes two replicas, so that after the
// failover one is left to confirm writes.
func TestSentinelFailoverLosesNoReplicatedWrite(t *testing.T) {
	t.Parallel()
	w := StartSentinelGroup(t, 2)
	setup := Setup{URL: w.Sentinels.URL(), Servers: w.Addrs(), Args: []string{"--durability=replicated"}}
	if !suite.Long {
		setup.Workers = 4 // most of the time it waits for the sentinels
	}
	s := New(t, setup)
	failOverBothWays(s, w)
	s.Finish()
}
