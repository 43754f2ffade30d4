package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/server/internal/web"
)

// lockedBuffer is a log that goroutines may write while the test reads it.
type lockedBuffer struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

// servePanics runs a server without a store, so that each handler that needs one panics.
func servePanics(t *testing.T, log io.Writer) (url string) {
	t.Helper()
	s := New(Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
	})
	return "http://" + listener.Addr().String()
}

func ask(t *testing.T, client *http.Client, request *http.Request) (*http.Response, []byte) {
	t.Helper()
	answered, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answered.Body.Close()
	body, err := io.ReadAll(answered.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered, body
}

func TestAPanicIsAnsweredAndLoggedAndHarmsNoOtherRequest(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	url := servePanics(t, log)
	transport := &http.Transport{MaxConnsPerHost: 1} // both requests share a connection
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	organization := uuid.New()
	key := token.NewAPIKey(organization)
	for _, id := range []string{"first-panic", "second-panic"} {
		request, err := http.NewRequest("GET", url+"/v1/organizations/"+organization.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-API-Key", key)
		request.Header.Set("X-Request-Id", id)
		answered, body := ask(t, client, request)

		var p web.Problem
		if err := json.Unmarshal(body, &p); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		want := web.NewProblem(500, "internal_error", internalError.detail)
		want.RequestID = id
		if answered.StatusCode != 500 || p.Code != want.Code || p.Detail != want.Detail || p.Title != want.Title ||
			p.RequestID != id || p.Status != 500 {
			t.Errorf("answered %d %s", answered.StatusCode, body)
		}
		for name, want := range map[string]string{
			"X-Request-Id": id, "X-Content-Type-Options": "nosniff", "Content-Type": "application/problem+json",
		} {
			if got := answered.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}

		healthz, err := http.NewRequest("GET", url+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answered, body := ask(t, client, healthz); answered.StatusCode != 200 {
			t.Errorf("the next request is answered %d %s", answered.StatusCode, body)
		}

		logged := log.String()
		for _, part := range []string{"handler panicked", "request_id=" + id, "nil pointer", "goroutine ", "getOrganization"} {
			if !strings.Contains(logged, part) {
				t.Errorf("the log lacks %q: %s", part, logged)
			}
		}
		if strings.Contains(logged, key) {
			t.Error("the log has the API key")
		}
	}
}

func TestPanicsInManyRequestsAtOnceAreEachAnswered(t *testing.T) {
	t.Parallel()
	url := servePanics(t, io.Discard)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for range 10 {
				answered, err := client.Post(url+"/v1/organizations", "application/json", strings.NewReader(`{"name":"n"}`))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answered.Body)
				answered.Body.Close()
				if answered.StatusCode != 500 || answered.Header.Get("Cache-Control") != "" || answered.Header.Get("Location") != "" {
					t.Errorf("answered %d %v", answered.StatusCode, answered.Header)
				}
			}
		})
	}
	wait.Wait()
}

// A request without a connection makes each of them panic.
func TestAPanicOutsideAHandlerEndsNothing(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	s := New(Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	unreadable, expecting := &fasthttp.RequestCtx{}, &fasthttp.RequestCtx{}
	s.front.HTTP.ErrorHandler(unreadable, io.ErrUnexpectedEOF)
	if status := s.front.HTTP.ExpectHandler(expecting); status != 500 {
		t.Errorf("an expectation: %d", status)
	}
	for name, ctx := range map[string]*fasthttp.RequestCtx{"what cannot be read": unreadable, "an expectation": expecting} {
		if ctx.Response.StatusCode() != 500 || !strings.Contains(string(ctx.Response.Body()), "internal_error") {
			t.Errorf("%s: %d %s", name, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	s.front.HTTP.HeaderReceived(nil)
	if n := strings.Count(log.String(), "panicked\" "); n != 3 {
		t.Errorf("%d of 3 panics are logged: %s", n, log)
	}
}

// panicking is an error whose text cannot be read.
type panicking struct{}

func (panicking) Error() string { panic("no words") }

func TestAPanicOutsideAHandlerIsCountedAsWhatItIsAnswered(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	s.front.AnswerUnreadable(&fasthttp.RequestCtx{}, io.ErrUnexpectedEOF) // without a connection
	if status := s.front.RefuseExpectation(&fasthttp.RequestCtx{}, panicking{}); status != 500 {
		t.Errorf("an expectation: %d", status)
	}
	told := toldBy(t, s.registry, "remit_http_requests_total")
	for _, series := range []string{"method=other route=none status=500", "method=GET route=none status=500"} {
		if told[series] != 1 {
			t.Errorf("%s is not counted once: %v", series, told)
		}
	}
}
