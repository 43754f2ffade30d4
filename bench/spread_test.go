package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// spread makes n operations from several goroutines, passing each its number, and returns the latencies. All goroutines stop
// soon after the first error.
func spread(goroutines, n int, do func(goroutine int) error) ([]time.Duration, error) {
	latencies := make([]time.Duration, n)
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for goroutine := range goroutines {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < n && failed.Load() == nil; i = int(next.Add(1) - 1) {
				began := time.Now()
				if err := do(goroutine); err != nil {
					failed.Store(&err)
					return
				}
				latencies[i] = time.Since(began)
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return latencies, nil
}

// quantile returns the value that the given part of the values does not exceed. It sorts them.
func quantile[T ~int64 | ~float64](part float64, of []T) T {
	slices.Sort(of)
	return of[min(int(part*float64(len(of))), len(of)-1)]
}

func median[T ~int64 | ~float64](of []T) T { return quantile(0.5, of) }
