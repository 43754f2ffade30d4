package kernel

import "github.com/prometheus/client_golang/prometheus"

var memoryUsed = prometheus.NewDesc("remit_redis_memory_ratio",
	"Used part of maxmemory, of the fullest primary, when something was created last; 0 without maxmemory.", nil, nil)

// Describe implements prometheus.Collector.
func (s *Core) Describe(to chan<- *prometheus.Desc) {
	s.Client.Describe(to)
	s.Refusals.by.Describe(to)
	to <- memoryUsed
}

// Collect implements prometheus.Collector. It sends nothing to Redis.
func (s *Core) Collect(to chan<- prometheus.Metric) {
	s.Client.Collect(to)
	s.Refusals.by.Collect(to)
	to <- prometheus.MustNewConstMetric(memoryUsed, prometheus.GaugeValue, s.Usage.pressure.ratio())
}
