package faults

import (
	"slices"
	"testing"

	"remit/money"
)

func TestUsageThatDiffersFromItsSessionIsFound(t *testing.T) {
	t.Parallel()
	right := Used{Session: "s", Actions: 3, Value: 3 * money.USD}
	for name, test := range map[string]struct {
		usage, types Used
		violations   int
	}{
		"equal":                       {right, right, 0},
		"an action less":              {Used{Actions: 2, Value: 3 * money.USD}, right, 1},
		"a micro-dollar more by type": {right, Used{Actions: 3, Value: 3*money.USD + 1}, 1},
		"no lines":                    {Used{}, Used{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stored(3)
			s.Usage, s.ByType = map[string]Used{"s": test.usage}, map[string]Used{"s": test.types}
			found := slices.DeleteFunc(Check(nil, s), func(v Violation) bool { return v.Rule != RuleUsage })
			if len(found) != test.violations {
				t.Errorf("found %v, want %d", found, test.violations)
			}
		})
	}
}
