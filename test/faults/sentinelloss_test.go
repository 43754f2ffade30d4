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
	t.Parallel()
	w := StartSentinelGroup(t, 1)
	s := New(t, Setup{URL: w.Sentinels.URL(), Servers: w.Addrs()})
	failOverBothWays(s, w)
	s.finishWith(lossRules)
}

// finishWith is Finish where writes were lost: it logs violations of these rules, and returns how many there are of each.
func (s *Scenario) finishWith(allowed []Rule) (broken map[Rule]int) {
	s.t.Helper()
	broken = map[Rule]int{}
	for _, v := range s.Violations() {
		if !slices.Contains(allowed, v.Rule) {
			s.t.Error(v)
			continue
		}
		broken[v.Rule]++
		s.t.Log(v)
	}
	s.t.Logf("violations because writes were lost: %v", broken)
	return broken
}
