package fleet

import (
	"math"
	"time"
)

const (
	maxInFlight       = 512 // actions in flight in open loop; further ones are sent late, and the report says so
	closedLoopWorkers = 64  // enough to keep a service busy, few enough for latencies to mean something
	refreshers        = 16
	refreshEvery      = time.Minute // at least once per run

	// How long a run continues to send actions that were due within its duration.
	minOverrun, maxOverrun = 5 * time.Second, 30 * time.Second
)

// overrun is how long a run may take beyond its duration.
func overrun(cfg config) time.Duration { return min(max(cfg.duration, minOverrun), maxOverrun) }

const (
	setUpPatience     = 5 * time.Minute
	reconcilePatience = 5 * time.Minute

	callers        = 32 // concurrent requests during set-up and reconciliation
	attempts       = 3  // of a repeatable request
	betweenAttempt = 250 * time.Millisecond
)

// attempts is how often a repeatable request is sent until there is an answer.
func (c config) attempts() int {
	if c.breaking {
		return math.MaxInt
	}
	return attempts
}

// sessionLifetime is longer than the slowest run with these flags.
func sessionLifetime(cfg config) time.Duration {
	return setUpPatience + cfg.duration + overrun(cfg) + reconcilePatience + time.Minute
}
