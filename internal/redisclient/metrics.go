package redisclient

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"remit/internal/metrics"
)

// callOutcome is how a call to Redis ended, for its metrics: the later in this list, the worse.
type callOutcome int

const (
	succeeded   callOutcome = iota
	refused                 // by the script
	unavailable             // Redis could not be reached; nothing was changed
	overloaded              // shed, unsent
	unknown                 // the answer to a write was lost
	failed                  // the reply is not one of the script's
	callOutcomes
)

var outcomeNames = [callOutcomes]string{"ok", "refused", "unavailable", "overloaded", "unknown", "failed"}

func outcomeOf(err error) callOutcome {
	switch {
	case err == nil:
		return succeeded
	case errors.Is(err, ErrOverloaded):
		return overloaded
	case errors.Is(err, ErrUnavailable):
		return unavailable
	case errors.Is(err, ErrOutcomeUnknown):
		return unknown
	case errors.Is(err, ErrReply):
		return failed
	}
	return refused
}

// worse returns the one of two errors that is counted where only one can be.
func worse(a, b error) error {
	if outcomeOf(b) > outcomeOf(a) {
		return b
	}
	return a
}

// callMetrics are what a client counts as it goes. Gauges are read when they are collected; see Client.Collect.
type callMetrics struct {
	calls       *prometheus.HistogramVec
	byOperation [][callOutcomes]metrics.Child[prometheus.Observer]
	failures    *prometheus.CounterVec
	byOutcome   [callOutcomes]prometheus.Counter // nil for outcomes that are no failure
	pipelines   *prometheus.HistogramVec
	sharedSizes prometheus.Observer // commands in a pipeline that calls share
	batchSizes  prometheus.Observer // calls of RunAll in a pipeline
	listSizes   prometheus.Observer // objects that ReadAll reads
	mergedSizes prometheus.Histogram
}

func newCallMetrics() *callMetrics {
	m := &callMetrics{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "remit_redis_call_duration_seconds",
			Help:    "Calls to Redis by operation and outcome, waiting and repeats included.",
			Buckets: metrics.Durations,
		}, []string{"operation", "outcome"}),
		byOperation: make([][callOutcomes]metrics.Child[prometheus.Observer], len(operations)),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remit_redis_failures_total",
			Help: "Calls to Redis whose outcome is neither ok nor refused.",
		}, []string{"outcome"}),
		pipelines: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "remit_redis_pipeline_commands",
			Help:    "Calls in one pipeline: shared ones, parts of a batch, reads of a list.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}, []string{"kind"}),
	}
	m.mergedSizes = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "remit_redis_merged_calls",
		Help:    "Calls of one script sent as one command. Calls that go by themselves are not counted.",
		Buckets: prometheus.ExponentialBuckets(2, 2, 4),
	})
	m.sharedSizes, m.batchSizes = m.pipelines.WithLabelValues("calls"), m.pipelines.WithLabelValues("batch")
	m.listSizes = m.pipelines.WithLabelValues("list")
	for how := unavailable; how < callOutcomes; how++ { // present from the start at 0, so that the first failure is an increase
		m.byOutcome[how] = m.failures.WithLabelValues(outcomeNames[how])
	}
	return m
}

// called counts a call that has ended.
func (m *callMetrics) called(op operationID, began time.Time, err error) {
	if m == nil || int(op) >= len(m.byOperation) { // a client that was not opened, a script that is newer than the client
		return
	}
	how := outcomeOf(err)
	m.byOperation[op][how].Get(func() prometheus.Observer {
		return m.calls.WithLabelValues(operations[op], outcomeNames[how])
	}).Observe(time.Since(began).Seconds())
	if failure := m.byOutcome[how]; failure != nil {
		failure.Inc()
	}
}

// load is how many calls wait in a queue, and how many are in flight.
type load struct{ waiting, inFlight int }

func (l *load) add(other load) {
	l.waiting += other.waiting
	l.inFlight += other.inFlight
}
