package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// ended is a request that was answered so.
func ended(method string, status int, a web.RequestInfo) (*fasthttp.RequestCtx, *web.RequestInfo) {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(method)
	ctx.SetStatusCode(status)
	a.Began = time.Now()
	return ctx, &a
}

// toldBy returns the series of a scrape as text, by name and labels.
func toldBy(t testing.TB, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families := must(registry.Gather())(t)
	told := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			told[strings.Join(labels, " ")] = series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount()) + series.GetGauge().GetValue()
		}
	}
	return told
}

func TestClientInputNeverBecomesAMetricLabel(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	c := web.NewMetrics(registry)
	route := c.At("/v1/agents/{id}")
	for range 3 {
		c.Request(ended("BREW", 418, web.RequestInfo{Metrics: route, Code: "of my own"}))
	}
	c.Request(ended("GET", 404, web.RequestInfo{Code: "not_found"}))
	c.Request(ended("GET", -1, web.RequestInfo{Metrics: route}))
	c.Request(ended("GET", 304, web.RequestInfo{Metrics: route}))

	told := toldBy(t, registry, "remit_http_requests_total")
	for series, want := range map[string]float64{
		"method=other route=/v1/agents/{id} status=other": 3,
		"method=GET route=none status=404":                1,
		"method=GET route=/v1/agents/{id} status=other":   1,
		"method=GET route=/v1/agents/{id} status=304":     1,
	} {
		wantEqual(t, series, told[series], want)
		delete(told, series)
	}
	for series, count := range told { // which are there from the first request on, see routeMetrics.first
		if count != 0 || !strings.HasSuffix(series, "status=500") && !strings.HasSuffix(series, "status=503") {
			t.Errorf("%s: %v", series, count)
		}
	}
	if problems := toldBy(t, registry, "remit_http_problems_total"); problems["code=not_found"] != 1 || len(problems) != len(c.ByCode) {
		t.Errorf("problems: %v", problems)
	}
}

func TestEveryErrorOfOAuthIsCounted(t *testing.T) {
	t.Parallel()
	var source []byte
	for _, file := range []string{"oauth.go", "oauthclient.go", "oautherror.go"} {
		source = append(source, must(os.ReadFile("internal/access/"+file))(t)...)
	}
	c := web.NewMetrics(prometheus.NewRegistry())
	found := regexp.MustCompile(`OAuthError\{"(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 10 {
		t.Errorf("%d errors: the test sees them no more", len(found))
	}
	for _, one := range found {
		if c.ByCode[one[1]] == nil {
			t.Errorf("%s is not counted", one[1])
		}
	}
}

// A request is counted without an allocation, on the hot paths too.
func TestCountingAllocatesNothing(t *testing.T) {
	s := New(Config{})
	route := s.front.Metrics.At("/v1/sessions/{id}/actions")
	ctx, a := ended("POST", 200, web.RequestInfo{Metrics: route})
	refused, refusal := ended("POST", 403, web.RequestInfo{Metrics: route, Code: "session_limit_reached"})
	for what, count := range map[string]func(){
		"a request": func() { s.front.Metrics.Request(ctx, a) },
		"a refusal": func() { s.front.Metrics.Request(refused, refusal) },
	} {
		count() // the first finds the series
		wantEqual(t, "allocations of "+what, testing.AllocsPerRun(100, count), 0)
	}
}

// Anyone may scrape, and a scrape takes time from other requests, so concurrent scrapes share one collection.
func TestScrapesThatArriveTogetherShareOneText(t *testing.T) {
	t.Parallel()
	gatherings := 0
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "gatherings"}, func() float64 {
		gatherings++
		return float64(gatherings)
	}))
	var s web.Scrapes
	arrived := time.Now()
	for scrape := range 100 {
		if text, err := s.Text(arrived, registry, scrape%2 == 1); err != nil || len(text) == 0 {
			t.Fatal(string(text), err)
		}
	}
	wantEqual(t, "how often 100 scrapes that arrived before gather", gatherings, 1)
	for _, packed := range []bool{false, true} { // who comes later hears of what was counted since
		before := gatherings
		text, err := s.Text(time.Now().Add(time.Hour), registry, packed)
		if err != nil || gatherings != before+1 {
			t.Errorf("%d more, %v", gatherings-before, err)
		}
		if packed {
			text = unpacked(t, text)
		}
		if !strings.Contains(string(text), "gatherings "+strconv.Itoa(gatherings)+"\n") {
			t.Errorf("after %d: %s", gatherings, text)
		}
	}
}

func unpacked(t *testing.T, packed []byte) []byte {
	t.Helper()
	return must(io.ReadAll(must(gzip.NewReader(bytes.NewReader(packed)))(t)))(t)
}
