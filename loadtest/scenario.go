package main

import (
	"context"
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
	mixed  scenario = "mixed"  // evenly, the blend of blend.go
)

var scenarios = []string{string(steady), string(burst), string(storm), string(mixed)}

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

// A run in bursts has so many cycles, and each cycle five slots. The last slot of a cycle has five times the rate of the
// others: five ninths of the cycle's arrivals in a fifth of its time. So the mean is the rate that was asked for, the low
// rate 5/9 of it, and that of a burst 25/9.
const burstCycles = 4

// inBursts moves a moment of an even schedule to where it belongs in one of bursts.
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

// storm lets the access tokens of all agents expire at once, half-way through the run. A service does not do so at
// anybody's wish, so the tokens are spoilt on the wire from then on: the service refuses them as it does expired ones,
// and each agent has to refresh before its next call. So that all do so at once, each then reads one of its sessions,
// beside the actions that are due; all these reads are due at the moment of the storm.
func (f *fleet) storm(ctx context.Context) {
	sleepOrDone(ctx, f.cfg.duration/2)
	expired := make(map[string]bool, len(f.agents))
	for _, a := range f.agents {
		// An agent that is just getting a new token has none that could expire.
		if access, err := a.sdk.Token(ctx); err == nil {
			expired[access] = true
		}
	}
	if ctx.Err() != nil {
		return
	}
	f.wire.expire(expired)
	at := time.Now()
	f.stats.stormAt = at
	f.stats.timeline.offer(at, int64(len(f.agents)))
	drive(ctx, maxInFlight, newPacer(int64(len(f.agents)), 0, 0), func(i int64, _ time.Time) {
		t := f.read(ctx, f.sessions[i], at) // the first sessions belong to one agent each
		f.stats.recordArrival(at, t.done, t.reply().outcome())
	})
}
