package client_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"remit/client"
)

type seen struct {
	method, url string
	path, query string
	header      http.Header
	body        string
	at          time.Time
}

// reaction is how the fake handles a request: it responds or fails.
type reaction struct {
	status int
	header http.Header
	body   string
	err    error
	delay  time.Duration // before the answer
}

// fake is an http.RoundTripper that needs no network, so that tests run in a synctest bubble, where time is free.
type fake struct {
	react func(n int, r seen) reaction // n counts requests to the same path, from 1

	mu       sync.Mutex
	requests []seen
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	got := received(r)
	f.mu.Lock()
	f.requests = append(f.requests, got)
	n := len(f.to(got.path))
	f.mu.Unlock()
	return f.react(n, got).answer(r)
}

func received(r *http.Request) seen {
	got := seen{method: r.Method, url: r.URL.String(), path: r.URL.Path, query: r.URL.RawQuery, header: r.Header, at: time.Now()}
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		got.body = string(body)
	}
	return got
}

func (does reaction) answer(r *http.Request) (*http.Response, error) {
	if !sleep(r, does.delay) {
		return nil, r.Context().Err()
	}
	if does.err != nil {
		return nil, does.err
	}
	if does.header == nil {
		does.header = http.Header{}
	}
	return &http.Response{
		StatusCode: does.status, Header: does.header, Body: io.NopCloser(strings.NewReader(does.body)), Request: r,
	}, nil
}

// sleep waits so long. It returns false at once if the request's sender leaves.
func sleep(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return r.Context().Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// to returns the requests to a path so far. Call it with mu held or after all requests.
func (f *fake) to(path string) []seen {
	var list []seen
	for _, r := range f.requests {
		if r.path == path {
			list = append(list, r)
		}
	}
	return list
}

func (f *fake) count(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.to(path))
}

func newClient(t *testing.T, f *fake, o client.Options) *client.Client {
	t.Helper()
	o.HTTPClient = &http.Client{Transport: f}
	return must(client.New("http://remit.test", o))(t)
}

// must is for calls that a test takes for granted: must(f())(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

// noError fails the test at once if a step that it takes for granted has failed.
func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

// inBubble runs a parallel test in a bubble, where time is free.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func runInBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, test) })
}

var (
	errReset   = &net.OpError{Op: "read", Err: fmt.Errorf("connection reset by peer")}
	errRefused = &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused")}
)

const (
	exchangePath = "/v1/auth/token"
	refreshPath  = "/v1/auth/refresh"
	actionsPath  = "/v1/sessions/s1/actions"
)

const usageBody = `{"session_id":"s1","action_count":3,"max_actions":10,"value_used_usd":1.5,"max_value_usd":8,` +
	`"value_held_usd":0.25,"remaining_actions":7,"remaining_value_usd":6.25,"expires_at":"2026-11-21T09:19:32.859Z"}`

func pair(n int) reaction {
	return reaction{status: 200, body: fmt.Sprintf(
		`{"access_token":"access-%d","refresh_token":"refresh-%d","token_type":"bearer","expires_in":3600}`, n, n)}
}

func ok(body string) reaction { return reaction{status: 200, body: body} }

func refusal(status int, code string, members ...string) reaction {
	all := append([]string{fmt.Sprintf(`"status":%d,"code":%q,"detail":"words","request_id":"r-1"`, status, code)}, members...)
	return reaction{status: status, body: "{" + strings.Join(all, ",") + "}"}
}

func fails(err error) reaction { return reaction{err: err} }

// issues returns a new pair for each exchange and refresh, and passes all other requests to next.
func issues(next func(n int, r seen) reaction) func(n int, r seen) reaction {
	var mu sync.Mutex
	issued := 0
	return func(n int, r seen) reaction {
		if r.path != exchangePath && r.path != refreshPath {
			return next(n, r)
		}
		mu.Lock()
		defer mu.Unlock()
		issued++
		return pair(issued)
	}
}

// inTurn uses one reaction per request to a path, and the last one for all further requests.
func inTurn(list ...reaction) func(n int, r seen) reaction {
	return func(n int, _ seen) reaction { return list[min(n, len(list))-1] }
}
