package redisstore

import (
	"github.com/prometheus/client_golang/prometheus"
)

var memoryUsed = prometheus.NewDesc("remit_redis_memory_ratio",
	"Used part of maxmemory, of the fullest primary, when something was created last; 0 without maxmemory.", nil, nil)

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
	if s.client == nil { // it was not opened
		return
	}
	s.client.Describe(to)
	s.refusals.by.Describe(to)
	s.expiredLeases.Describe(to)
	s.expiredHolds.Describe(to)
	if s.feeds != nil {
		s.feeds.describe(to)
	}
	to <- memoryUsed
}

// Collect implements prometheus.Collector. It sends nothing to Redis.
func (s *Store) Collect(to chan<- prometheus.Metric) {
	if s.client == nil {
		return
	}
	s.client.Collect(to)
	s.refusals.by.Collect(to)
	s.expiredLeases.Collect(to)
	s.expiredHolds.Collect(to)
	if s.feeds != nil {
		s.feeds.collect(to)
	}
	to <- prometheus.MustNewConstMetric(memoryUsed, prometheus.GaugeValue, s.usage.pressure.ratio())
}
