package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"remit/redisstore/webhooks"
)

// deliveryMetrics count what this instance has reported of deliveries. No label has a value that an
// organization or a receiver chose.
type deliveryMetrics struct {
	registry                *prometheus.Registry // of all of them
	delivered, failed, dead prometheus.Counter
	missed, panics          prometheus.Counter
	duration                prometheus.Histogram
	organizations           prometheus.GaugeFunc
}

// attemptDurations are the bounds in seconds of how long a receiver takes. A request ends after requestTime.
var attemptDurations = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15}

func newDeliveryMetrics(organizations func() int) deliveryMetrics {
	registry := prometheus.NewRegistry()
	create := promauto.With(registry)
	attempts := create.NewCounterVec(prometheus.CounterOpts{
		Name: "remit_webhook_attempts_total",
		Help: "Attempts to deliver an event to a webhook, tests included: delivered; failed, to be tried again; dead, given up.",
	}, []string{"outcome"})
	return deliveryMetrics{
		registry:  registry,
		delivered: attempts.WithLabelValues("delivered"), failed: attempts.WithLabelValues("failed"), dead: attempts.WithLabelValues("dead"),
		missed: create.NewCounter(prometheus.CounterOpts{
			Name: "remit_webhook_missed_events_total", Help: "Events that were no longer kept when a webhook came to them.",
		}),
		panics: create.NewCounter(prometheus.CounterOpts{
			Name: "remit_webhook_panics_total", Help: "Panics recovered while webhooks were delivered, which goes on.",
		}),
		duration: create.NewHistogram(prometheus.HistogramOpts{
			Name: "remit_webhook_attempt_duration_seconds", Help: "How long attempts took, failed ones included.", Buckets: attemptDurations,
		}),
		organizations: create.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "remit_webhook_organizations", Help: "Organizations that this instance delivers for now, at most 512.",
		}, func() float64 { return float64(organizations()) }),
	}
}

// note counts a report that was stored.
func (m deliveryMetrics) note(report webhooks.DeliveryReport) {
	for _, d := range report.Outcomes {
		switch d.Status {
		case webhooks.DeliveryDelivered:
			m.delivered.Inc()
		case webhooks.DeliveryDead:
			m.dead.Inc()
		default:
			m.failed.Inc()
		}
		m.duration.Observe(d.Took.Seconds())
	}
	for _, d := range report.Held {
		if d.Status == webhooks.DeliveryDead {
			m.dead.Inc()
		}
	}
	m.missed.Add(float64(report.Reached.Missed - report.Found.Missed))
}

// Describe implements prometheus.Collector.
func (d *Deliverer) Describe(to chan<- *prometheus.Desc) { d.metrics.registry.Describe(to) }

// Collect implements prometheus.Collector. It sends nothing to Redis.
func (d *Deliverer) Collect(to chan<- prometheus.Metric) { d.metrics.registry.Collect(to) }
