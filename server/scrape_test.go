package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/redisstore"
	"remit/server"
)

// scraped asks for a path as Prometheus does, and returns the answer and its body as it came.
func scraped(t *testing.T, address, method, path string) (*http.Response, string) {
	t.Helper()
	request := must(http.NewRequest(method, "http://"+address+path, nil))(t)
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response := must(transport.RoundTrip(request))(t)
	defer response.Body.Close()
	body := must(io.ReadAll(response.Body))(t)
	return response, string(body)
}

// wantMetrics fails the test unless a scrape has these lines.
func (c *client) wantMetrics(lines ...string) {
	c.t.Helper()
	_, metrics := scraped(c.t, c.on.address, "GET", "/metrics")
	for _, line := range lines {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			c.t.Errorf("the metrics lack %s", line)
		}
	}
}

func TestMetricsCountRequestsByRoute(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		id := w.newSession(fields{"max_actions": 3})
		access := w.exchange().access
		w.post("/sessions/"+id+"/actions", fields{"count": 2, "value_usd": 1.25}, asAgent(access)).is(200)
		w.post("/v1/sessions/"+id+"/actions", fields{"count": 2}, asAgent(access)).is(403)
		if response, _ := scraped(t, api.on.address, "GET", "/metrics"); response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
			t.Errorf("%d %v", response.StatusCode, response.Header)
		}
		api.wantMetrics(
			`remit_http_requests_total{method="POST",route="/v1/sessions/{id}/actions",status="200"} 1`,
			`remit_http_requests_total{method="POST",route="/v1/sessions/{id}/actions",status="403"} 1`,
			`remit_http_request_duration_seconds_count{method="POST",route="/v1/sessions/{id}/actions"} 2`,
			`remit_http_problems_total{code="session_limit_reached"} 1`,
			`remit_http_requests_in_flight 1`,
			`remit_charges_total{outcome="allowed"} 1`,
			`remit_charges_total{outcome="max_actions"} 1`,
			`remit_actions_charged_total 2`,
			`remit_charged_micro_usd_total{by="charge"} 1.25e+06`,
			`remit_tokens_issued_total{grant="client_secret"} 1`,
			`remit_access_tokens_verified_total{cache="miss"} 1`,
			`remit_access_tokens_verified_total{cache="hit"} 1`,
			`remit_sessions_created_total 1`,
			`remit_redis_call_duration_seconds_count{operation="charge_session",outcome="ok"} 1`,
			`remit_redis_call_duration_seconds_count{operation="charge_session",outcome="refused"} 1`,
			`remit_redis_durability_info{mode="local"} 1`,
		)
		if head, text := scraped(t, api.on.address, "HEAD", "/metrics"); head.StatusCode != 200 || text != "" {
			t.Errorf("HEAD: %d %q", head.StatusCode, text)
		}
	})
}

// Anyone may scrape, as often as they like. Scrapes are never refused or logged.
func TestManyScrapesAtOnceAreAllAnswered(t *testing.T) {
	t.Parallel()
	log := &syncBuffer{}
	api := onMiniredis(t, setup{log: log})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}} // which asks for gzip
	defer client.CloseIdleConnections()
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range 4 {
				response, err := client.Get("http://" + api.on.address + "/metrics")
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(response.Body)
				if _ = response.Body.Close(); err != nil || response.StatusCode != 200 || !response.Uncompressed || !strings.Contains(string(body), "remit_build_info{") {
					t.Errorf("%d %.200s, %v", response.StatusCode, body, err)
				}
			}
		})
	}
	group.Wait()
	wantEqual(t, "the log", log.String(), "")
}

// Apart, the metrics are nowhere else, and nothing else is there. Both end together, though a connection is left open.
func TestMetricsApartAreNowhereElse(t *testing.T) {
	t.Parallel()
	store := must(redisstore.Open(redisstore.Config{URL: "redis://127.0.0.1:1"}))(t)
	defer store.Close()
	s := server.New(server.Config{Store: store, Log: newLog(nil), MetricsApart: true})
	server.HoldToDescription(t, s)
	public, private := must(net.Listen("tcp", "127.0.0.1:0"))(t), must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 2)
	go func() { served <- s.Serve(public) }()
	go func() { served <- s.ServeMetrics(private) }()
	for _, one := range []struct {
		at     net.Listener
		path   string
		status int
	}{
		{public, "/metrics", 404}, {public, "/healthz", 200},
		{private, "/metrics", 200}, {private, "/healthz", 200}, {private, "/readyz", 404}, {private, "/v1/agents", 404}, {private, "/", 404},
	} {
		if response, body := scraped(t, one.at.Addr().String(), "GET", one.path); response.StatusCode != one.status {
			t.Errorf("%s at %v: %d %s, want %d", one.path, one.at.Addr(), response.StatusCode, body, one.status)
		}
	}
	if response, _ := scraped(t, private.Addr().String(), "POST", "/metrics"); response.StatusCode != 405 {
		t.Errorf("POST: %d", response.StatusCode)
	}
	silent := must(net.Dial("tcp", private.Addr().String()))(t)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}
