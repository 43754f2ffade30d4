package main

import (
	"context"
	"time"
)

// timerGrain is how late a timer of the Go runtime may fire on Linux, where it waits in whole milliseconds: more than a
// fast service takes to answer. What a load generator oversleeps would count as the service's latency.
const timerGrain = 2 * time.Millisecond

// sleepOrDone sleeps for d, or less when ctx is done first; not at all when d is not positive.
func sleepOrDone(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sleepExactly is sleepOrDone, but not late by a timer's grain: it leaves the last of d to the kernel's own clock.
func sleepExactly(ctx context.Context, d time.Duration) {
	start := time.Now()
	sleepOrDone(ctx, d-timerGrain)
	if rest := d - time.Since(start); rest > 0 && ctx.Err() == nil {
		sleepInKernel(rest)
	}
}
