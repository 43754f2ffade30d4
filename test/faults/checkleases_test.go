package faults

import (
	"slices"
	"testing"

	"remit/money"
)

func leaseEventOf(kind, lease string, actions int64, value money.MicroUSD) leaseEvent {
	e := leaseEvent{Type: "lease." + kind, Lease: lease}
	e.Data.Actions, e.Data.Leased, e.Data.Charged = actions, value, value
	return e
}

// The usage is forged: each wrong one must be found, and the closest right one accepted. Lease a was granted with 10 actions
// and 100 micro-USD, and settled with 4.
func TestCheckLeasesFindsEachViolation(t *testing.T) {
	t.Parallel()
	granted, settled := leaseEventOf("granted", "a", 10, 100), leaseEventOf("settled", "a", 4, 4*holderValue)
	lost := leaseEventOf("granted", "b", 5, 50)
	holds := func(actions int64, used money.MicroUSD) Session {
		return Session{Actions: actions, Used: used, MaxActions: 20, MaxValue: 1000}
	}
	for _, tc := range []struct {
		name string
		fact leaseFact
		want []Rule
	}{
		{"what was granted is stored", leaseFact{granted: 4, trail: []leaseEvent{granted, settled}, stored: holds(4, 28)}, nil},
		{"a charge is lost", leaseFact{granted: 4, trail: []leaseEvent{granted, leaseEventOf("settled", "a", 3, 21)}, stored: holds(3, 21)},
			[]Rule{RuleLost}},
		{"its value is lost", leaseFact{granted: 4, trail: []leaseEvent{granted, leaseEventOf("settled", "a", 4, 21)}, stored: holds(4, 21)},
			[]Rule{RuleLost}},
		{"the rest is not returned", leaseFact{granted: 4, trail: []leaseEvent{granted, settled}, stored: holds(10, 100)}, []Rule{RuleSurplus}},
		{"a settlement is in the trail and not in the session", leaseFact{trail: []leaseEvent{granted, settled}}, []Rule{RuleLost}},
		{"charges of the session beside the lease", leaseFact{granted: 6, trail: []leaseEvent{granted, settled}, stored: holds(6, 42)}, nil},
		{"one of unknown outcome that happened", leaseFact{granted: 4, unknown: 1, trail: []leaseEvent{granted, settled}, stored: holds(5, 35)}, nil},
		{"one of unknown outcome that did not", leaseFact{granted: 4, unknown: 1, trail: []leaseEvent{granted, settled}, stored: holds(4, 28)}, nil},
		{"one of unknown outcome that happened twice", leaseFact{granted: 4, unknown: 1, trail: []leaseEvent{granted, settled}, stored: holds(6, 42)},
			[]Rule{RuleSurplus}},
		{"the lease of a killed holder counts in full", leaseFact{granted: 6, killed: 1, trail: []leaseEvent{granted, settled, lost}, stored: holds(9, 78)}, nil},
		{"it counts in part", leaseFact{granted: 6, killed: 1, trail: []leaseEvent{granted, settled, lost}, stored: holds(6, 42)}, []Rule{RuleLost}},
		{"it counts twice", leaseFact{granted: 4, killed: 1, trail: []leaseEvent{granted, settled, lost}, stored: holds(14, 128)}, []Rule{RuleSurplus}},
		{"a lease is not settled, and no holder was killed", leaseFact{granted: 6, trail: []leaseEvent{granted, settled, lost}, stored: holds(9, 78)}, []Rule{RuleLost}},
		{"something is held", leaseFact{granted: 4, trail: []leaseEvent{granted, settled}, stored: Session{Actions: 4, Used: 28, Held: 72, MaxActions: 20, MaxValue: 1000}},
			[]Rule{RuleSurplus}},
		{"the limit is exceeded", leaseFact{granted: 4, trail: []leaseEvent{granted, settled}, stored: Session{Actions: 4, Used: 28, MaxActions: 3, MaxValue: 1000}},
			[]Rule{RuleLimit}},
	} {
		if got := rulesOf(checkLeases("s", tc.fact)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
