package fleet

import "testing"

func TestAuditKeepsTheFirstAndCountsAll(t *testing.T) {
	var a audit
	if !a.clean() {
		t.Error("not clean at first")
	}
	for range keptViolations + 5 {
		a.add([]violation{found(ruleLost, "s", "")})
	}
	a.add([]violation{found(ruleUnchecked, "s", "")})
	if len(a.kept) != keptViolations || a.total() != keptViolations+6 || a.clean() {
		t.Errorf("kept %d, counted %v", len(a.kept), a.counts)
	}
	var gap audit
	gap.add([]violation{found(ruleUnchecked, "s", "")})
	if gap.clean() {
		t.Error("clean although something could not be checked")
	}
}
