package fleet

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// series counts the answers of one operation, or of one second of it.
type series struct {
	latencies   *hdrhistogram.Histogram // of all answers, since they were due
	refused     int64
	errors      int64
	first, last time.Time // first due, last answered
}

func newSeries() series { return series{latencies: newHistogram()} }

func (s *series) add(due, done time.Time, o outcome) {
	recordDuration(s.latencies, done.Sub(due))
	switch o {
	case refused:
		s.refused++
	case unknown:
		s.errors++
	}
	if s.first.IsZero() || due.Before(s.first) {
		s.first = due
	}
	if done.After(s.last) {
		s.last = done
	}
}

// perSecond is the mean rate between the first and the last, as text. A single call has none: its time is a latency.
func (s *series) perSecond() string {
	span, count := s.last.Sub(s.first).Seconds(), s.latencies.TotalCount()
	switch {
	case count == 1:
		return "–"
	case span <= 0:
		return "0"
	}
	return fmt.Sprintf("%.0f", float64(count)/span)
}

// moment sums up the arrivals of a short time.
type moment struct {
	count, refused, errors int64
	p50, p99               time.Duration
}

// stats counts all requests of a run. Recording is safe for concurrent use. Read it only after the workers have ended, except
// by takeMoment.
type stats struct {
	mu     [operations]sync.Mutex
	all    [operations]series
	during [operations]*hdrhistogram.Histogram // latencies between set-up and reconciliation
	acting atomic.Bool                         // true between set-up and reconciliation
	recent series                              // arrivals since the last takeMoment; guarded by recentMu

	recentMu sync.Mutex
	timeline timeline
	kinds    kinds
	stormAt  time.Time // when all tokens expired; zero: no storm

	shed     atomic.Int64 // 503 answers to shed requests
	servedMu sync.Mutex
	served   *hdrhistogram.Histogram // latencies of the other answers, while acting

	lagMu sync.Mutex
	lag   *hdrhistogram.Histogram // how late actions were sent
}

func newStats() *stats {
	s := &stats{recent: newSeries(), lag: newHistogram(), served: newHistogram()}
	for o := range s.all {
		s.all[o], s.during[o] = newSeries(), newHistogram()
	}
	return s
}

// record counts one reply.
func (s *stats) record(op operation, due, done time.Time, r reply) {
	if r.outcome() != acknowledged {
		s.kinds.add(op, r)
	}
	s.mu[op].Lock()
	defer s.mu[op].Unlock()
	s.all[op].add(due, done, r.outcome())
	if s.acting.Load() {
		recordDuration(s.during[op], done.Sub(due))
		s.recordServed(done.Sub(due), r)
	}
}

// acknowledged is how many calls were acknowledged so far.
func (s *stats) acknowledged() (sum int64) {
	for op := range s.all {
		s.mu[op].Lock()
		sum += s.all[op].latencies.TotalCount() - s.all[op].refused - s.all[op].errors
		s.mu[op].Unlock()
	}
	return sum
}

// recordServed counts shed and served requests separately. Only both together describe an overloaded service.
func (s *stats) recordServed(took time.Duration, r reply) {
	switch {
	case r.isShed():
		s.shed.Add(1)
	case r.outcome() != unknown:
		s.servedMu.Lock()
		defer s.servedMu.Unlock()
		recordDuration(s.served, took)
	}
}

// recordArrival counts the outcome of an action's first call.
func (s *stats) recordArrival(due, done time.Time, o outcome) {
	s.timeline.add(due, done, o)
	s.recentMu.Lock()
	defer s.recentMu.Unlock()
	s.recent.add(due, done, o)
}

// recordLag counts how late an action was sent.
func (s *stats) recordLag(d time.Duration) {
	s.lagMu.Lock()
	defer s.lagMu.Unlock()
	recordDuration(s.lag, d)
}

// takeMoment sums up the arrivals since the previous takeMoment.
func (s *stats) takeMoment() moment {
	s.recentMu.Lock()
	defer s.recentMu.Unlock()
	r := &s.recent
	m := moment{
		count: r.latencies.TotalCount(), refused: r.refused, errors: r.errors,
		p50: quantile(r.latencies, 50), p99: quantile(r.latencies, 99),
	}
	r.latencies.Reset()
	*r = series{latencies: r.latencies}
	return m
}

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
