package kernel

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

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

// creationRefusals counts creations that a quota or a rate refused.
type creationRefusals struct{ by *prometheus.CounterVec }

func newCreationRefusals() *creationRefusals {
	c := &creationRefusals{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "remit_quota_refusals_total",
		Help: "Creations refused because an organization or an agent holds too much, by the quota, or creates too fast, by the rate.",
	}, []string{"by"})}
	for _, name := range ResourceNames { // present from the start at 0, so that the first refusal is an increase
		c.by.WithLabelValues(name)
	}
	for _, limit := range []string{OrganizationRate, AgentRate} {
		c.by.WithLabelValues(limit)
	}
	return c
}

// Count counts err if it is a *QuotaError or a *RateError, and returns it.
func (c *creationRefusals) Count(err error) error {
	if quota, is := errors.AsType[*QuotaError](err); is {
		c.by.WithLabelValues(quota.Quota).Inc()
	} else if tooFast, is := errors.AsType[*RateError](err); is {
		c.by.WithLabelValues(tooFast.Limit).Inc()
	}
	return err
}
