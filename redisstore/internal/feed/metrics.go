package feed

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// feedMetrics are those of the feeds that this instance has led.
type feedMetrics struct {
	events, lost, Panics prometheus.Counter
	delay                prometheus.Histogram
}

var feedsLed = prometheus.NewDesc("remit_feeds_led", "Feeds of organizations that this instance leads now.", nil, nil)

var feedsWait = prometheus.NewDesc("remit_feed_oldest_wait_seconds",
	"How long the feed has waited that this instance has tried to serve for longest, 0 for none.", nil, nil)

func newFeedMetrics() *feedMetrics {
	return &feedMetrics{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "remit_feed_events_total", Help: "Events that this instance appended to feeds of organizations.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "remit_feed_events_lost_total", Help: "Events of type events.lost among them: audit trails had lost events before feeds had them.",
		}),
		Panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "remit_feed_panics_total", Help: "Panics recovered in the loops of feeds, which went on.",
		}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "remit_feed_delay_seconds", Help: "From a change until its event was in the feed, by the clocks of Redis.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60, 600, 3600},
		}),
	}
}

// appended counts what was appended at a time of Redis, in ms since 1970.
func (m *feedMetrics) appended(p *Appending, now int64) {
	m.events.Add(float64(p.count))
	m.lost.Add(float64(p.lost))
	for _, at := range p.times {
		m.delay.Observe(max(0, float64(now-int64(at))/1000)) //nolint:gosec // ms since 1970
	}
}

// Describe implements prometheus.Collector.
func (d *Feeds) Describe(to chan<- *prometheus.Desc) {
	d.Metrics.events.Describe(to)
	d.Metrics.lost.Describe(to)
	d.Metrics.Panics.Describe(to)
	d.Metrics.delay.Describe(to)
	to <- feedsLed
	to <- feedsWait
}

// Collect implements prometheus.Collector. It sends nothing to Redis.
func (d *Feeds) Collect(to chan<- prometheus.Metric) {
	d.Metrics.events.Collect(to)
	d.Metrics.lost.Collect(to)
	d.Metrics.Panics.Collect(to)
	d.Metrics.delay.Collect(to)
	led := 0
	for _, a := range d.All() {
		if a.leads.Load() {
			led++
		}
	}
	to <- prometheus.MustNewConstMetric(feedsLed, prometheus.GaugeValue, float64(led))
	to <- prometheus.MustNewConstMetric(feedsWait, prometheus.GaugeValue, d.LongestWait().Seconds())
}

// LongestWait returns for how long nothing has come of serving the feed that has waited longest.
func (d *Feeds) LongestWait() (longest time.Duration) {
	now := d.Now()
	for _, a := range d.All() {
		a.Mu.Lock()
		if a.isUnfinishedLocked() {
			longest = max(longest, now.Sub(a.waits))
		}
		a.Mu.Unlock()
	}
	return longest
}
