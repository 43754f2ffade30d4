package main

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

// timeline counts the arrivals of a run by time. What is offered, and how long it took, belongs to the moment it was due;
// an answer to the moment it came. Safe for use by many workers; reading it is for when they are done.
type timeline struct {
	mu       sync.Mutex
	start    time.Time // zero: not begun
	width    time.Duration
	schedule *pacer
	slices   []slice
}

// slice is a short time of a run.
type slice struct {
	beside                int64 // what was due beside the schedule
	done, refused, errors int64
	latencies             *hdrhistogram.Histogram // nil: nothing was due
}

// begin starts the timeline of a schedule that takes so long.
func (l *timeline) begin(schedule *pacer, duration time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.schedule = schedule.start, schedule
	l.width = max(thinnest, (duration / wantedSlices).Round(thinnest))
}

// add enters an arrival; nothing before the timeline has begun.
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
		// Two digits, as there are many of these.
		requested.latencies = hdrhistogram.New(1, longest.Microseconds(), 2)
	}
	recordDuration(requested.latencies, done.Sub(due))
}

// offer enters what is due beside the schedule.
func (l *timeline) offer(due time.Time, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at(due).beside += n
}

// at is the slice of a moment. A run ends soon after its duration, which bounds their number.
func (l *timeline) at(t time.Time) *slice {
	i := int(max(t.Sub(l.start), 0) / l.width)
	for len(l.slices) <= i {
		l.slices = append(l.slices, slice{})
	}
	return &l.slices[i]
}

// offered is how many arrivals were due in slice i, which there is.
func (l *timeline) offered(i int) int64 {
	from := l.start.Add(time.Duration(i) * l.width)
	return l.slices[i].beside + l.schedule.dueBefore(from.Add(l.width)) - l.schedule.dueBefore(from)
}
