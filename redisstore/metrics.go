package redisstore

import "github.com/prometheus/client_golang/prometheus"

func newExpiredLeases() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "remit_leases_expired_total",
		Help: "Leases that this instance observed expired before they were settled. They count as spent in full.",
	})
}

func newExpiredHolds() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "remit_holds_expired_total",
		Help: "Holds that this instance released because their time was up before they were settled.",
	})
}

// Describe implements prometheus.Collector.
func (s *Store) Describe(to chan<- *prometheus.Desc) {
	if s.core == nil { // it was not opened
		return
	}
	s.core.Describe(to)
	s.expiredLeases.Describe(to)
	s.expiredHolds.Describe(to)
	if s.feeds != nil {
		s.feeds.Describe(to)
	}
	if s.recorder != nil {
		to <- dueLag
	}
}

// Collect implements prometheus.Collector. It sends nothing to Redis.
func (s *Store) Collect(to chan<- prometheus.Metric) {
	if s.core == nil {
		return
	}
	s.core.Collect(to)
	s.expiredLeases.Collect(to)
	s.expiredHolds.Collect(to)
	if s.feeds != nil {
		s.feeds.Collect(to)
	}
	if s.recorder != nil {
		to <- prometheus.MustNewConstMetric(dueLag, prometheus.GaugeValue, s.recorder.lag().Seconds())
	}
}
