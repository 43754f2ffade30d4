package fleet

import (
	"context"
	"time"
)

// timerGrain is how late a timer of the Go runtime may fire on Linux, where it waits in whole milliseconds. A fast service
// answers in less, and the load generator's delay would count as the service's latency.
const timerGrain = 2 * time.Millisecond

// sleepOrDone sleeps for d, or until ctx is done. It returns at once if d is not positive.
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

// sleepExactly is sleepOrDone without the delay of timerGrain: it sleeps the last part of d in the kernel.
func sleepExactly(ctx context.Context, d time.Duration) {
	start := time.Now()
	sleepOrDone(ctx, d-timerGrain)
	if rest := d - time.Since(start); rest > 0 && ctx.Err() == nil {
		sleepInKernel(rest)
	}
}
