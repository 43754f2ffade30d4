package gateway

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// seconds are the upper bounds of the histograms: a model takes from a fraction of a second to minutes.
var seconds = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 150, 300, 600, 1800}

// gatewayMetrics counts calls. No label has a value that a client chose.
type gatewayMetrics struct {
	requests    *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	settlements *prometheus.CounterVec
	firstByte   *prometheus.HistogramVec
	durations   *prometheus.HistogramVec

	fitted, cut, hangUps, failures, panics prometheus.Counter
	unsettled                              prometheus.Gauge
	streams, memory                        prometheus.GaugeFunc
}

func newMetrics(streams, memory func() int) *gatewayMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, []string{"upstream"})
	}
	gauge := func(name, help string, value func() int) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	m := &gatewayMetrics{
		requests:    vector("remit_gateway_requests_total", "Requests answered by the gateway, by upstream and class of status.", "upstream", "status"),
		refusals:    vector("remit_gateway_refusals_total", "Requests that the gateway refused, by code.", "code"),
		settlements: vector("remit_gateway_settlements_total", "Calls settled, by how: the provider's usage, the hold, or rolled back.", "how"),
		firstByte:   histogram("remit_gateway_first_byte_seconds", "Time from a request's header to the first byte of the provider's answer."),
		durations:   histogram("remit_gateway_duration_seconds", "Time from a request's header to the end of its answer."),
		fitted:      counter("remit_gateway_fitted_total", "Calls whose output was limited to what was left."),
		cut:         counter("remit_gateway_cut_total", "Answers that ended before they were whole, because of the provider, a limit of time, or a stop."),
		hangUps:     counter("remit_gateway_hang_ups_total", "Answers whose client hung up before their end."),
		failures:    counter("remit_gateway_unsettled_total", "Calls whose settlement could not be stored: their holds are spent when they expire."),
		panics:      counter("remit_gateway_panics_total", "Panics recovered in requests of the gateway."),
		unsettled:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "remit_gateway_settling", Help: "Calls whose settlement is being stored."}),
		streams:     gauge("remit_gateway_calls_in_progress", "Calls in progress.", streams),
		memory:      gauge("remit_gateway_body_bytes", "Memory reserved for the bodies of requests.", memory),
	}
	for _, how := range []string{byUsage, byHold, rolledBack} {
		m.settlements.WithLabelValues(how)
	}
	return m
}

// Collectors has the gateway's metrics, for the server's registry.
func (g *Gateway) Collectors() []prometheus.Collector {
	m := g.metrics
	return []prometheus.Collector{
		m.requests, m.refusals, m.settlements, m.firstByte, m.durations, m.fitted, m.cut, m.hangUps, m.failures, m.panics, m.unsettled, m.streams, m.memory,
	}
}

func (m *gatewayMetrics) settled(how string) { m.settlements.WithLabelValues(how).Inc() }

// answered counts an exchange.
func (m *gatewayMetrics) answered(e *exchange) {
	name := cmp.Or(e.upstreamName(), "none")
	m.requests.WithLabelValues(name, classOf(e.report.status)).Inc()
	if e.report.code != "" {
		m.refusals.WithLabelValues(e.report.code).Inc()
	}
	if e.report.hungUp {
		m.hangUps.Inc()
	}
	if e.report.firstByte > 0 {
		m.firstByte.WithLabelValues(name).Observe(e.report.firstByte.Seconds())
		m.durations.WithLabelValues(name).Observe(time.Since(e.began).Seconds())
	}
}

// classOf returns 2xx for 200.
func classOf(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return string(rune('0'+status/100)) + "xx"
}
