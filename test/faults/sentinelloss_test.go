//go:build long

package faults

import (
	"slices"
	"testing"
)

// lossRules are the rules that lost writes break.
var lossRules = []Rule{RuleLost, RuleSurplus, RuleKey, RuleRevoked, RuleSuccessors, RuleLive, RuleBothEnds, RuleStatus,
	RuleDenied, RuleMissing}

// By default replication is asynchronous, so a failover may lose the last writes. The test logs how many. No limit may be
// exceeded, and the service must recover.
func TestSentinelFailoverWithOneReplicaKeepsLimits(t *testing.T) {
	w := StartSentinelGroup(t, 1)
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
	t.Logf("violations because asynchronous replication lost writes: %d", lost)
}
