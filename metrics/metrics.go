// Package metrics is what the packages that count have in common: in which steps times are counted, and how a hot path
// comes by what it counts on without a look-up by its labels. What there is to count stands where it happens, in
// server/metrics.go and redisstore/metrics.go; docs/metrics.md has it all.
package metrics

import "sync/atomic"

// Durations are the upper bounds in seconds by which times are counted: from what a charge takes at the least to what a
// call to Redis may take at the most. They are closest where most requests are.
//
// There are no native histograms beside them: client_golang finds their buckets by a key that it allocates, for each
// observation (docs/decisions/0032-metrics.md).
var Durations = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3,
}

// Child is one time series of a metric with labels, kept once it was looked up. It is safe for concurrent use.
type Child[T any] struct{ found atomic.Pointer[T] }

// Get returns the series, which look finds by its labels the first time. So only what happens has a series.
func (c *Child[T]) Get(look func() T) T {
	if found := c.found.Load(); found != nil {
		return *found
	}
	found := look()
	c.found.Store(&found)
	return found
}
