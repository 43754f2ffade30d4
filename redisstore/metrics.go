package redisstore

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"remit/metrics"
)

// operations are the names by which calls are counted: those of the scripts, and the commands of Redis that are called
// by themselves. A call has the place of its name in this list, so that it is counted without looking for the name.
var operations = []string{"other"}

// operationID is a place in operations.
type operationID int

// asOperation is called while the process starts, for each script.
func asOperation(name string) operationID {
	if at := slices.Index(operations, name); at >= 0 {
		return operationID(at)
	}
	operations = append(operations, name)
	return operationID(len(operations) - 1)
}

var (
	opHGet, opHMGet, opZAdd = asOperation("hget"), asOperation("hmget"), asOperation("zadd")
	opGet, opPTTL, opExists = asOperation("get"), asOperation("pttl"), asOperation("exists")
)

// operationOf returns the place of a command of Redis.
func operationOf(verb string) operationID {
	switch verb {
	case "hget":
		return opHGet
	case "hmget":
		return opHMGet
	case "zadd":
		return opZAdd
	case "get":
		return opGet
	case "pttl":
		return opPTTL
	case "exists":
		return opExists
	}
	return 0
}

// callOutcome is how a call to Redis ended, as far as its metrics tell: the later in this list, the worse.
type callOutcome int

const (
	succeeded   callOutcome = iota
	refused                 // the script said no
	unavailable             // Redis could not be asked; nothing was changed
	overloaded              // turned away, unsent
	unknown                 // the answer to a write was lost
	failed                  // the answer was none that the script gives
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
	case errors.Is(err, errReply):
		return failed
	}
	return refused
}

// worse returns that of two errors which counts where only one can.
func worse(a, b error) error {
	if outcomeOf(b) > outcomeOf(a) {
		return b
	}
	return a
}

// counts are what a store counts as it goes. What stands still is asked for when somebody looks; see Collect.
type counts struct {
	calls       *prometheus.HistogramVec
	byOperation [][callOutcomes]metrics.Child[prometheus.Observer]
	troubles    *prometheus.CounterVec
	byOutcome   [callOutcomes]prometheus.Counter // nil for those that are no trouble
	pipelines   *prometheus.HistogramVec
	ofCalls     prometheus.Observer // how many share a pipeline of a lane
	ofBatch     prometheus.Observer // how many parts of a batch go to one server
	ofList      prometheus.Observer // how many objects a list reads at once
	overQuota   *prometheus.CounterVec
}

func newCounts() *counts {
	c := &counts{
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "remit_redis_call_duration_seconds",
			Help:    "Calls to Redis by operation and outcome, with their waiting and their repeats.",
			Buckets: metrics.Durations,
		}, []string{"operation", "outcome"}),
		byOperation: make([][callOutcomes]metrics.Child[prometheus.Observer], len(operations)),
		troubles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remit_redis_failures_total",
			Help: "Calls to Redis that came to nothing known: what of remit_redis_call_duration_seconds is neither ok nor refused.",
		}, []string{"outcome"}),
		pipelines: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "remit_redis_pipeline_commands",
			Help:    "Commands that went to Redis in one pipeline: calls that share one, parts of a batch, reads of a list.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}, []string{"kind"}),
		overQuota: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remit_quota_refusals_total",
			Help: "Creations refused because an organization or an agent holds too much, by the quota, or creates too fast, by the rate.",
		}, []string{"by"}),
	}
	for _, name := range resourceNames { // 0 at first, as below
		c.overQuota.WithLabelValues(name)
	}
	for _, limit := range []string{organizationRate, agentRate} {
		c.overQuota.WithLabelValues(limit)
	}
	c.ofCalls, c.ofBatch, c.ofList = c.pipelines.WithLabelValues("calls"), c.pipelines.WithLabelValues("batch"), c.pipelines.WithLabelValues("list")
	for how := unavailable; how < callOutcomes; how++ { // 0 at first: of a first failure one is to hear
		c.byOutcome[how] = c.troubles.WithLabelValues(outcomeNames[how])
	}
	return c
}

// quotaRefused counts an error that is such a refusal, and returns it.
func (c *counts) quotaRefused(err error) error {
	var quota *QuotaError
	var tooFast *RateError
	switch {
	case c == nil:
	case errors.As(err, &quota):
		c.overQuota.WithLabelValues(quota.Quota).Inc()
	case errors.As(err, &tooFast):
		c.overQuota.WithLabelValues(tooFast.Limit).Inc()
	}
	return err
}

// called counts a call that has ended.
func (c *counts) called(op operationID, began time.Time, err error) {
	if c == nil || int(op) >= len(c.byOperation) { // a store that was not opened, a script of a test's own
		return
	}
	how := outcomeOf(err)
	c.byOperation[op][how].Get(func() prometheus.Observer {
		return c.calls.WithLabelValues(operations[op], outcomeNames[how])
	}).Observe(time.Since(began).Seconds())
	if trouble := c.byOutcome[how]; trouble != nil {
		trouble.Inc()
	}
}

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("remit_redis_"+name, help, labels, nil)
}

// What stands still between two looks, or is counted by go-redis.
var (
	waitingCalls  = described("calls_waiting", "Calls that wait for a place in a pipeline, by the queue that they wait in.", "queue")
	underWayCalls = described("calls_under_way", "Calls that Redis has not answered yet, without those that wait; of batches and lists: pipelines.", "queue")
	stuckLanes    = described("lanes_stuck", "Queues whose calls are turned away because Redis has not answered for a second or more, but for one that tries.")
	poolHits      = described("pool_hits_total", "Times that a free connection was found in the pool.")
	poolMisses    = described("pool_misses_total", "Times that there was no free connection in the pool.")
	poolTimeouts  = described("pool_timeouts_total", "Times that no connection became free in time.")
	poolStale     = described("pool_stale_connections_total", "Connections that were taken out of the pool because they were of no use any more.")
	poolSizes     = described("pool_connections", "Connections to Redis, by whether they are in use.", "state")
	memoryUsed    = described("memory_ratio", "Used part of maxmemory, of the fullest primary, when something was created last; 0 without maxmemory.")
	durability    = described("durability_info", "1, with when a write is acknowledged.", "mode")
)

// Describe implements prometheus.Collector.
func (s *Store) Describe(to chan<- *prometheus.Desc) {
	if s.counts == nil { // it was not opened
		return
	}
	s.counts.calls.Describe(to)
	s.counts.troubles.Describe(to)
	s.counts.pipelines.Describe(to)
	s.counts.overQuota.Describe(to)
	for _, d := range []*prometheus.Desc{waitingCalls, underWayCalls, stuckLanes, poolHits, poolMisses, poolTimeouts, poolStale, poolSizes, durability, memoryUsed} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It asks nothing of Redis.
func (s *Store) Collect(to chan<- prometheus.Metric) {
	if s.counts == nil {
		return
	}
	s.counts.calls.Collect(to)
	s.counts.troubles.Collect(to)
	s.counts.pipelines.Collect(to)
	s.counts.overQuota.Collect(to)
	to <- prometheus.MustNewConstMetric(memoryUsed, prometheus.GaugeValue, s.usage.pressure.ratio())
	s.collectQueues(to)
	s.pools.collect(to)
	to <- prometheus.MustNewConstMetric(durability, prometheus.GaugeValue, 1, string(s.config.Durability))
}

// queued is how many calls wait in a queue, and how many are under way.
type queued struct{ waiting, underWay int }

func (q *queued) add(other queued) {
	q.waiting += other.waiting
	q.underWay += other.underWay
}

// collectQueues sums over the servers: which there are is no label, for nodes of a cluster come and go.
func (s *Store) collectQueues(to chan<- prometheus.Metric) {
	var calls, confirmed, batches queued
	stuck := 0
	for _, l := range s.lanes.all() {
		calls.add(l.queued())
		confirmed.add(l.confirmed.queued())
		batches.add(l.batches.queued())
		for _, one := range []*lane{l, l.confirmed} {
			if one.isStuck() {
				stuck++
			}
		}
	}
	for name, q := range map[string]queued{"calls": calls, "confirmed": confirmed, "batches": batches, "lists": s.lists.queued()} {
		to <- prometheus.MustNewConstMetric(waitingCalls, prometheus.GaugeValue, float64(q.waiting), name)
		to <- prometheus.MustNewConstMetric(underWayCalls, prometheus.GaugeValue, float64(q.underWay), name)
	}
	to <- prometheus.MustNewConstMetric(stuckLanes, prometheus.GaugeValue, float64(stuck))
}

func (l *lanes) all() []*lane {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*lane, 0, len(l.byAddress))
	for _, one := range l.byAddress {
		all = append(all, one)
	}
	return all
}

func (l *lane) queued() queued {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.row.waiting + l.row.excess.length
	return queued{waiting, max(int(l.underWay.Load())-waiting, 0)} // who waits is counted as under way a moment before, and after
}

// isStuck says whether Redis has not answered the lane's last pipeline and somebody tries again or waits. Only a next pipeline
// can find that it answers: a server that has left the cluster gets none, and neither does one that nobody has need of.
func (l *lane) isStuck() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stuck.Load() && (l.pipelines > 0 || l.row.waiting+l.row.excess.length > 0)
}

func (b *bulk) queued() queued {
	b.mu.Lock()
	defer b.mu.Unlock()
	return queued{b.row.waiting, b.underWay}
}
