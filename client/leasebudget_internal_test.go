package client

import (
	"testing"

	"remit/money"
)

// What is held is room that no grant gets, whichever of the two limits is nearer.
func TestWhatRemainsLeavesOutWhatIsHeld(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name         string
		maxCommitted *money.MicroUSD
		want         money.MicroUSD
	}{
		{"no max_committed", nil, 60},
		{"max_committed is nearer", new(money.MicroUSD(80)), 20},
		{"max_value is nearer", new(money.MicroUSD(500)), 60},
	} {
		info := SessionInfo{MaxActions: 10, ActionCount: 4, MaxValue: 100, ValueUsed: 10, ValueHeld: 30, ValueCommitted: 30, MaxCommitted: test.maxCommitted}
		if left := info.remainder(); left != (amount{6, test.want}) {
			t.Errorf("%s: %+v remains", test.name, left)
		}
	}
}
