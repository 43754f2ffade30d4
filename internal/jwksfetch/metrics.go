package jwksfetch

import "github.com/prometheus/client_golang/prometheus"

// fetchMetrics are the metrics of a Fetcher.
type fetchMetrics struct{ read, failed prometheus.Counter }

func newFetchMetrics() fetchMetrics {
	counter := func(outcome string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Name: "remit_jwks_fetches_total", Help: "Reads of the key sets that agents and trusted issuers publish, by outcome: ok, failed.",
			ConstLabels: prometheus.Labels{"outcome": outcome},
		})
	}
	return fetchMetrics{read: counter("ok"), failed: counter("failed")}
}

func (m fetchMetrics) count(err error) {
	if err == nil {
		m.read.Inc()
	} else {
		m.failed.Inc()
	}
}

// Describe implements prometheus.Collector.
func (f *Fetcher) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(f, to) }

// Collect implements prometheus.Collector.
func (f *Fetcher) Collect(to chan<- prometheus.Metric) {
	f.metrics.read.Collect(to)
	f.metrics.failed.Collect(to)
}
