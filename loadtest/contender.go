package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// contender repeats one thing for a while, and returns how fast that was.
type contender struct {
	name  string
	round func(ctx context.Context, d time.Duration) (speed, error)
}

// speed is how fast one round was.
type speed struct {
	perSecond float64
	p50       time.Duration
}

// rounds are the rounds of one contender.
type rounds struct {
	name string
	all  []speed
}

// perSecond returns the median throughput of the rounds.
func (r rounds) perSecond() float64 {
	return median(r.all, func(p speed) float64 { return p.perSecond })
}

// p50 returns the median of the rounds' median latencies.
func (r rounds) p50() time.Duration {
	return median(r.all, func(p speed) time.Duration { return p.p50 })
}

func median[T float64 | time.Duration](of []speed, value func(speed) T) T {
	list := make([]T, len(of))
	for i, p := range of {
		list[i] = value(p)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// ratio is the quotient of two medians.
type ratio struct {
	name  string
	value float64
}

// Names of the contenders.
var (
	nameCharge      = fmt.Sprintf("charge, %d connections", closedLoopWorkers)
	nameBare        = fmt.Sprintf("bare fasthttp handler, %d connections", closedLoopWorkers)
	nameBenchmark   = "script by redis-benchmark -c 50 -P 1"
	nameChargeAlone = "charge, 1 connection"
	nameScriptAlone = "script by go-redis, 1 connection"
)

// closedLoop returns a contender with so many concurrent workers. It uses the same pacer as the fleet.
func closedLoop(name string, workers int, do func() error) contender {
	return contender{name, func(ctx context.Context, d time.Duration) (speed, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var mu sync.Mutex
		latencies := newHistogram()
		began := time.Now()
		drive(ctx, workers, newPacer(math.MaxInt64, 0, d), func(_ int64, due time.Time) {
			if err := do(); err != nil {
				cancel(err)
				return
			}
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			recordDuration(latencies, took)
		})
		took := time.Since(began).Seconds()
		return speed{float64(latencies.TotalCount()) / took, quantile(latencies, 50)}, context.Cause(ctx)
	}}
}
