package fleet

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// slices of a run on its timeline.
const (
	wantedSlices = 100
	thinnest     = 100 * time.Millisecond
)

// timeline counts the arrivals of a run by time. Offered load and latency belong to the time when the action was due, answers
// to the time when they came. Adding is safe for concurrent use. Read it only after the workers have ended.
type timeline struct {
	mu       sync.Mutex
	start    time.Time // zero: not begun
	width    time.Duration
	schedule *pacer
	slices   []slice
}

// slice is a short time of a run.
type slice struct {
	beside                int64 // arrivals in addition to the schedule
	done, refused, errors int64
	latencies             *hdrhistogram.Histogram // nil: nothing was due
}

// begin starts the timeline of a schedule with the given duration.
func (l *timeline) begin(schedule *pacer, duration time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.schedule = schedule.start, schedule
	l.width = max(thinnest, (duration / wantedSlices).Round(thinnest))
}

// add counts an arrival. Before begin it does nothing.
func (l *timeline) add(due, done time.Time, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.start.IsZero() {
		return
	}
	came := l.at(done)
	switch o {
	case acknowledged:
		came.done++
	case refused:
		came.refused++
	default:
		came.errors++
	}
	requested := l.at(due)
	if requested.latencies == nil {
		// Two digits save memory: there are many of these histograms.
		requested.latencies = hdrhistogram.New(1, longest.Microseconds(), 2)
	}
	recordDuration(requested.latencies, done.Sub(due))
}

// offer counts arrivals in addition to the schedule.
func (l *timeline) offer(due time.Time, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(due).beside += n
}

// at returns the slice of a time. A run ends soon after its duration, which bounds the number of slices.
func (l *timeline) at(t time.Time) *slice {
	i := int(max(t.Sub(l.start), 0) / l.width)
	for len(l.slices) <= i {
		l.slices = append(l.slices, slice{})
	}
	return &l.slices[i]
}

// offered returns how many arrivals were due in slice i, which must exist.
func (l *timeline) offered(i int) int64 {
	from := l.start.Add(time.Duration(i) * l.width)
	return l.slices[i].beside + l.schedule.dueBefore(from.Add(l.width)) - l.schedule.dueBefore(from)
}
