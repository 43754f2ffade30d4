package web

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"remit/internal/metrics"
)

// Metrics counts requests by route, method, status and problem, and measures how long they took.
type Metrics struct {
	ended     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	InFlight  prometheus.Gauge
	ByCode    map[string]prometheus.Counter // by the code of the problem
	nowhere   *routeMetrics                 // of requests without a route

	Panics, replays prometheus.Counter
	shed            atomic.Uint64 // calls
}

// oauthCodes are the error codes of RFC 6749 that are not problem codes too.
var oauthCodes = []string{"invalid_grant", "invalid_scope", "unsupported_grant_type", "unsupported_response_type"}

// NewMetrics registers the metrics of requests.
func NewMetrics(registry *prometheus.Registry) *Metrics {
	c := &Metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remit_http_requests_total", Help: "Requests answered, by route, method and status.",
		}, []string{"route", "method", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "remit_http_request_duration_seconds", Help: "Time from a request's last byte to its answer, or to the beginning of an event stream.",
			Buckets: metrics.Durations,
		}, []string{"route", "method"}),
		InFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "remit_http_requests_in_flight", Help: "Requests in progress, long polls included, event streams that have begun excluded.",
		}),
		ByCode: map[string]prometheus.Counter{},
	}
	c.nowhere = newRouteMetrics("none", c)
	problems := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "remit_http_problems_total", Help: "Requests answered with a problem, by code; at OAuth endpoints by the OAuth error.",
	}, []string{"code"})
	for code := range Titles {
		c.ByCode[code] = problems.WithLabelValues(code)
	}
	for _, code := range oauthCodes {
		c.ByCode[code] = problems.WithLabelValues(code)
	}
	c.Panics = metrics.Counter(registry, "remit_panics_total",
		"Panics recovered in requests, event streams and the background of the console.", nil)
	c.replays = metrics.Counter(registry, "remit_idempotent_replays_total",
		"Requests answered with the stored outcome of their idempotency key.", nil)
	shed := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "remit_shed_total", Help: "Calls shed unsent, because too many waited for Redis or it had stopped answering.",
	}, func() float64 { return float64(c.shed.Load()) })
	registry.MustRegister(c.ended, c.durations, c.InFlight, problems, shed)
	return c
}

// The methods and statuses that have a label of their own. All others share the last label, because a client may send any
// method.
var (
	methodLabels = [...]string{"GET", "POST", "HEAD", "PATCH", "DELETE", "PUT", "OPTIONS", "other"}
	statusLabels = [...]int{200, 201, 204, 303, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 417, 422, 429, 431, 500, 503, 0}
)

// statusIndexes holds the index in statusLabels of each status.
var statusIndexes = func() (places [600]uint8) {
	for i := range places {
		places[i] = uint8(len(statusLabels) - 1)
	}
	for place, status := range statusLabels[:len(statusLabels)-1] {
		places[status] = uint8(place)
	}
	return places
}()

func statusIndex(status int) int {
	if status < 0 || status >= len(statusIndexes) {
		return len(statusLabels) - 1
	}
	return int(statusIndexes[status])
}

func statusName(place int) string {
	if status := statusLabels[place]; status != 0 {
		return strconv.Itoa(status)
	}
	return "other"
}

func methodIndex(method []byte) int {
	for place, name := range methodLabels[:len(methodLabels)-1] {
		if string(method) == name {
			return place
		}
	}
	return len(methodLabels) - 1
}

// routeMetrics are the metrics of one route. A series is looked up when it is first needed.
type routeMetrics struct {
	route    string
	all      *Metrics
	byMethod [len(methodLabels)]struct {
		duration metrics.Child[prometheus.Observer]
		ended    [len(statusLabels)]metrics.Child[prometheus.Counter]
	}
}

func newRouteMetrics(route string, all *Metrics) *routeMetrics {
	return &routeMetrics{route: route, all: all}
}

func (r *routeMetrics) of(method, status int) prometheus.Counter {
	return r.all.ended.WithLabelValues(r.route, methodLabels[method], statusName(status))
}

// first creates the series of a method on its first request. Its failure counters start at 0, so that the first failure is
// visible as an increase.
func (r *routeMetrics) first(method int) prometheus.Observer {
	for _, failure := range []int{fasthttp.StatusInternalServerError, fasthttp.StatusServiceUnavailable} {
		r.of(method, statusIndex(failure))
	}
	return r.all.durations.WithLabelValues(r.route, methodLabels[method])
}

// At returns the metrics of a route. Routes call it once, when they are registered.
func (c *Metrics) At(route string) *routeMetrics {
	if route == "" {
		return c.nowhere
	}
	return newRouteMetrics(route, c)
}

// answered counts an answered request. r is nil without a route, code is "" without a problem.
func (c *Metrics) answered(r *routeMetrics, method, status int, code string, took time.Duration) {
	c.InFlight.Dec()
	if r == nil {
		r = c.nowhere
	}
	status = statusIndex(status)
	counted := &r.byMethod[method]
	counted.ended[status].Get(func() prometheus.Counter { return r.of(method, status) }).Inc()
	counted.duration.Get(func() prometheus.Observer { return r.first(method) }).Observe(took.Seconds())
	if code == "" {
		return
	}
	if problem, known := c.ByCode[code]; known {
		problem.Inc()
	}
}

// Request counts an answered request.
func (c *Metrics) Request(ctx *fasthttp.RequestCtx, info *RequestInfo) {
	c.answered(info.Metrics, info.methodIndex(ctx), ctx.Response.StatusCode(), info.Code, time.Since(info.Began))
}
