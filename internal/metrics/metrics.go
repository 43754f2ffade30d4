// Package metrics is what all packages with metrics share: the buckets of duration histograms, and time series that a hot path
// looks up only once. The packages define their own metrics in a file metrics.go.
package metrics

import "sync/atomic"

// Durations are the upper bounds in seconds of all duration histograms: from the fastest charge to the timeout of a Redis call,
// closest where most requests are.
//
// There are no native histograms, because client_golang allocates for each of their observations
// (docs/decisions/0032-metrics.md).
var Durations = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3,
}

// Child caches one time series of a metric with labels. It is safe for concurrent use.
type Child[T any] struct{ found atomic.Pointer[T] }

// Get returns the series, which lookUp finds by its labels on the first call. A series exists only once it is used.
func (c *Child[T]) Get(lookUp func() T) T {
	if found := c.found.Load(); found != nil {
		return *found
	}
	found := lookUp()
	c.found.Store(&found)
	return found
}
