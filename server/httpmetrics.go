package server

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"remit/metrics"
)

// requestCounts are how many requests there were, how they ended and how long they took.
type requestCounts struct {
	ended     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  prometheus.Gauge
	byCode    map[string]prometheus.Counter // of problems; refusals only pay for looking here
	nowhere   *routeCounts                  // of no route
}

// oauthCodes are the errors of RFC 6749 that no problem stands for.
var oauthCodes = []string{"invalid_grant", "invalid_scope", "unsupported_grant_type", "unsupported_response_type"}

func newRequestCounts(registry *prometheus.Registry) *requestCounts {
	c := &requestCounts{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "remit_http_requests_total", Help: "Requests answered, by route, method and status.",
		}, []string{"route", "method", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "remit_http_request_duration_seconds", Help: "Time from a request's last byte to its answer, by route and method. Of a stream of events: to its beginning.",
			Buckets: metrics.Durations,
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "remit_http_requests_in_flight", Help: "Requests that are being answered, long polls for events too, streams of events only until they have begun.",
		}),
		byCode: map[string]prometheus.Counter{},
	}
	c.nowhere = newRouteCounts("none", c)
	problems := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "remit_http_problems_total", Help: "Requests answered with a problem, by its code; those of the OAuth face alone by their OAuth error.",
	}, []string{"code"})
	for code := range titles {
		c.byCode[code] = problems.WithLabelValues(code)
	}
	for _, code := range oauthCodes {
		c.byCode[code] = problems.WithLabelValues(code)
	}
	registry.MustRegister(c.ended, c.durations, c.inFlight, problems)
	return c
}

// The methods and statuses that are counted by name, and last the name of all others: a client may send any method.
var (
	countedMethods  = [...]string{"GET", "POST", "HEAD", "PATCH", "DELETE", "PUT", "OPTIONS", "other"}
	countedStatuses = [...]int{200, 201, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 417, 422, 429, 431, 500, 503, 0}
)

// statusPlaces has the place in countedStatuses of each status.
var statusPlaces = func() (places [600]uint8) {
	for i := range places {
		places[i] = uint8(len(countedStatuses) - 1)
	}
	for place, status := range countedStatuses[:len(countedStatuses)-1] {
		places[status] = uint8(place)
	}
	return places
}()

func statusPlace(status int) int {
	if status < 0 || status >= len(statusPlaces) {
		return len(countedStatuses) - 1
	}
	return int(statusPlaces[status])
}

func statusName(place int) string {
	if status := countedStatuses[place]; status != 0 {
		return strconv.Itoa(status)
	}
	return "other"
}

func methodPlace(method []byte) int {
	for place, name := range countedMethods[:len(countedMethods)-1] {
		if string(method) == name {
			return place
		}
	}
	return len(countedMethods) - 1
}

// routeCounts are those of one route. A series is looked up when it is needed first.
type routeCounts struct {
	route    string
	all      *requestCounts
	byMethod [len(countedMethods)]struct {
		duration metrics.Child[prometheus.Observer]
		ended    [len(countedStatuses)]metrics.Child[prometheus.Counter]
	}
}

func newRouteCounts(route string, all *requestCounts) *routeCounts {
	return &routeCounts{route: route, all: all}
}

func (r *routeCounts) of(method, status int) prometheus.Counter {
	return r.all.ended.WithLabelValues(r.route, countedMethods[method], statusName(status))
}

// first is for the first request of a method. Its failures are 0 from then on: of the first one somebody is to hear.
func (r *routeCounts) first(method int) prometheus.Observer {
	for _, failure := range []int{fasthttp.StatusInternalServerError, fasthttp.StatusServiceUnavailable} {
		r.of(method, statusPlace(failure))
	}
	return r.all.durations.WithLabelValues(r.route, countedMethods[method])
}

// at returns the counts of a route. It is called when the routes are made.
func (c *requestCounts) at(route string) *routeCounts {
	if route == "" {
		return c.nowhere
	}
	return newRouteCounts(route, c)
}

// answered counts an answered request. Its route is nil when it had none; its code is that of its problem, "" for none.
func (c *requestCounts) answered(r *routeCounts, method, status int, code string, took time.Duration) {
	c.inFlight.Dec()
	if r == nil {
		r = c.nowhere
	}
	status = statusPlace(status)
	counted := &r.byMethod[method]
	counted.ended[status].Get(func() prometheus.Counter { return r.of(method, status) }).Inc()
	counted.duration.Get(func() prometheus.Observer { return r.first(method) }).Observe(took.Seconds())
	if code == "" {
		return
	}
	if problem, known := c.byCode[code]; known {
		problem.Inc()
	}
}
