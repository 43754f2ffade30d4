package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is what arrives in a run, and when. It is a flag.Value.
type scenario string

const (
	steady scenario = "steady" // actions, evenly
	burst  scenario = "burst"  // actions, at a low rate with bursts of five times that
	storm  scenario = "storm"  // steady, but all access tokens expire at once half-way through
	mixed  scenario = "mixed"  // evenly, the mix of mix.go
	leased scenario = "leased" // actions, evenly, charged to leases
	trees  scenario = "tree"   // evenly, trees of sessions under a budget: the treeMix of mix.go
)

var scenarios = []string{string(steady), string(burst), string(storm), string(mixed), string(leased), string(trees)}

// String is the scenario's name.
func (s *scenario) String() string { return string(*s) }

// Set takes a name.
func (s *scenario) Set(name string) error {
	if !slices.Contains(scenarios, name) {
		return fmt.Errorf("must be one of %s", strings.Join(scenarios, ", "))
	}
	*s = scenario(name)
	return nil
}

// burstCycles is the number of cycles in a burst run. Each cycle has five slots. The last slot has five times the rate of the
// others: five ninths of the cycle's arrivals in a fifth of its time. So the mean is the requested rate, the low rate is 5/9
// of it, and the rate in a burst 25/9.
const burstCycles = 4

// inBursts maps an offset of an even schedule to one of a schedule with bursts.
func inBursts(offset, span time.Duration) time.Duration {
	cycle := span / burstCycles
	if cycle == 0 {
		return offset
	}
	began, within := offset/cycle*cycle, offset%cycle
	if low := cycle * 4 / 9; within >= low {
		return began + cycle*4/5 + (within-low)*9/25
	}
	return began + within*9/5
}
