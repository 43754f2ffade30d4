package redisclient

import (
	"errors"
	"slices"
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

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("remit_redis_"+name, help, labels, nil)
}

// Gauges, and what go-redis counts.
var (
	waitingCalls     = described("calls_waiting", "Calls that wait for a pipeline, by queue.", "queue")
	callsInFlight    = described("calls_in_flight", "Calls that Redis has not answered yet; of batches and lists: pipelines.", "queue")
	stalledPipelines = described("pipelines_stalled", "Queues that shed calls, because Redis has not answered for a second or more.")
	poolHits         = described("pool_hits_total", "Times that a free connection was found in the pool.")
	poolMisses       = described("pool_misses_total", "Times that there was no free connection in the pool.")
	poolTimeouts     = described("pool_timeouts_total", "Times that no connection became free within a second.")
	poolStale        = described("pool_stale_connections_total", "Connections dropped from the pool as unusable.")
	poolSizes        = described("pool_connections", "Connections to Redis, by whether they are in use.", "state")
	durability       = described("durability_info", "1, with when a write is acknowledged.", "mode")
)

// Describe implements prometheus.Collector.
func (c *Client) Describe(to chan<- *prometheus.Desc) {
	c.metrics.calls.Describe(to)
	c.metrics.failures.Describe(to)
	c.metrics.pipelines.Describe(to)
	c.metrics.mergedSizes.Describe(to)
	for _, d := range []*prometheus.Desc{waitingCalls, callsInFlight, stalledPipelines, poolHits, poolMisses, poolTimeouts, poolStale, poolSizes, durability} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It sends nothing to Redis.
func (c *Client) Collect(to chan<- prometheus.Metric) {
	c.metrics.calls.Collect(to)
	c.metrics.failures.Collect(to)
	c.metrics.pipelines.Collect(to)
	c.metrics.mergedSizes.Collect(to)
	c.collectQueues(to)
	c.collectPools(to)
	to <- prometheus.MustNewConstMetric(durability, prometheus.GaugeValue, 1, string(c.config.Durability))
}

// collectQueues sums over the servers: a server is no label, because nodes of a cluster come and go.
func (c *Client) collectQueues(to chan<- prometheus.Metric) {
	var calls, confirmed, batches load
	stalled := 0
	for _, p := range c.pipeliners.all() {
		calls.add(p.load())
		confirmed.add(p.confirmed.load())
		batches.add(p.batches.load())
		for _, one := range []*pipeliner{p, p.confirmed} {
			if one.isStalled() {
				stalled++
			}
		}
	}
	for name, l := range map[string]load{"calls": calls, "confirmed": confirmed, "batches": batches, "lists": c.lists.load()} {
		to <- prometheus.MustNewConstMetric(waitingCalls, prometheus.GaugeValue, float64(l.waiting), name)
		to <- prometheus.MustNewConstMetric(callsInFlight, prometheus.GaugeValue, float64(l.inFlight), name)
	}
	to <- prometheus.MustNewConstMetric(stalledPipelines, prometheus.GaugeValue, float64(stalled))
}

func (c *Client) collectPools(to chan<- prometheus.Metric) {
	sum, idle, all := c.pools.read()
	for counter, value := range map[*prometheus.Desc]uint64{poolHits: sum.hits, poolMisses: sum.misses, poolTimeouts: sum.timeouts, poolStale: sum.stale} {
		to <- prometheus.MustNewConstMetric(counter, prometheus.CounterValue, float64(value))
	}
	to <- prometheus.MustNewConstMetric(poolSizes, prometheus.GaugeValue, float64(idle), "idle")
	to <- prometheus.MustNewConstMetric(poolSizes, prometheus.GaugeValue, float64(all-idle), "used")
}

// operations are the names by which calls are counted: those of the scripts, and the commands of Redis that Call sends. A call
// carries the place of its name in this list, so that it is counted without looking for the name.
var operations = []string{"other"}

// operationID is a place in operations.
type operationID int

// registerOperation is called while the process starts, for each script.
func registerOperation(name string) operationID {
	if at := slices.Index(operations, name); at >= 0 {
		return operationID(at)
	}
	operations = append(operations, name)
	return operationID(len(operations) - 1)
}

// commandOperations are the places of commands of Redis; any other command is "other".
var commandOperations = func() map[string]operationID {
	places := map[string]operationID{}
	for _, verb := range []string{"hget", "hmget", "zadd", "get", "pttl", "exists", "set", "hgetall", "hdel", "zrange", "zscore", "zrem"} {
		places[verb] = registerOperation(verb)
	}
	return places
}()
