package fleet

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the maximum latency of the histograms. A longer one counts as this.
const longest = 10 * time.Minute

// newHistogram counts durations in microseconds, to three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Microseconds(), 3)
}

// recordDuration counts d, within the histogram's bounds.
func recordDuration(h *hdrhistogram.Histogram, d time.Duration) {
	// Cannot fail: the value is inside the bounds the histogram was made with.
	_ = h.RecordValue(min(max(d, 0), longest).Microseconds())
}

// quantile is the latency that the given percentage of h does not exceed.
func quantile(h *hdrhistogram.Histogram, percent float64) time.Duration {
	return time.Duration(h.ValueAtQuantile(percent)) * time.Microsecond
}
