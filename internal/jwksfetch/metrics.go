package jwksfetch

import "github.com/prometheus/client_golang/prometheus"

// newFetches returns the metric of a Fetcher.
func newFetches() *prometheus.CounterVec {
	fetches := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "remit_jwks_fetches_total", Help: "Reads of the key sets that agents and trusted issuers publish, by outcome: ok, failed.",
	}, []string{"outcome"})
	for _, outcome := range []string{"ok", "failed"} {
		fetches.WithLabelValues(outcome) // from 0 on
	}
	return fetches
}

func (f *Fetcher) count(err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	f.fetches.WithLabelValues(outcome).Inc()
}

// Describe implements prometheus.Collector.
func (f *Fetcher) Describe(to chan<- *prometheus.Desc) { f.fetches.Describe(to) }

// Collect implements prometheus.Collector.
func (f *Fetcher) Collect(to chan<- prometheus.Metric) { f.fetches.Collect(to) }
