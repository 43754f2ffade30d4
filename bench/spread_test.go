package bench

import (
	"sync"
	"sync/atomic"
	"time"
)

// spread does n operations from so many goroutines and returns their latencies.
func spread(goroutines, n int, do func() error) ([]time.Duration, error) {
	latencies := make([]time.Duration, n)
	var next atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	for range goroutines {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				began := time.Now()
				if err := do(); err != nil {
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
