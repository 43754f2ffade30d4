package redisclient

import "github.com/prometheus/client_golang/prometheus"

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
