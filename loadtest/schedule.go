package main

import "time"

const (
	maxInFlight       = 512 // actions under way at once in open loop; more are late and say so
	closedLoopWorkers = 64  // enough to keep a service busy, few enough to leave the latencies a meaning
	refreshers        = 16
	refreshEvery      = time.Minute // and at least once in a run

	// How long a run waits for what was due in time but could not be sent in time.
	minOverrun, maxOverrun = 5 * time.Second, 30 * time.Second
)

// overrun is how long a run may take beyond its duration.
func overrun(cfg config) time.Duration { return min(max(cfg.duration, minOverrun), maxOverrun) }

const reconcilePatience = 5 * time.Minute

const (
	setUpPatience  = 5 * time.Minute
	callers        = 32 // requests under way at once, outside the run itself
	attempts       = 3  // for what may be requested again
	betweenAttempt = 250 * time.Millisecond
)

// sessionLifetime outlasts the slowest run with these flags.
func sessionLifetime(cfg config) time.Duration {
	return setUpPatience + cfg.duration + overrun(cfg) + reconcilePatience + time.Minute
}
