package server

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/server/internal/web"
)

type lockedBuffer = LockedBuffer

// LockedBuffer is a log that goroutines may write while the test reads it.
type LockedBuffer struct {
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

// count returns how many times the text was logged.
func (b *lockedBuffer) count(text string) int { return strings.Count(b.String(), text) }

func TestAPanicIsAnsweredAndLoggedAndHarmsNoOtherRequest(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	r := runServer(t, withoutStore, Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	conn := dial(t, r.address) // of all requests
	organization := uuid.New()
	key := token.NewAPIKey(organization)
	for _, id := range []string{"first-panic", "second-panic"} {
		must(fmt.Fprintf(conn.Conn, "GET /v1/organizations/%s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nX-Request-Id: %s\r\n\r\n", organization, key, id))(t)
		answered := must(http.ReadResponse(conn.Reader, nil))(t)
		var p web.Problem
		must(0, json.Unmarshal(must(io.ReadAll(answered.Body))(t), &p))(t)
		want := web.NewProblem(500, "internal_error", internalError.detail)
		want.RequestID = id
		if answered.StatusCode != 500 || fmt.Sprint(p) != fmt.Sprint(want) {
			t.Errorf("answered %d %+v, want %+v", answered.StatusCode, p, want)
		}
		for name, want := range map[string]string{
			"X-Request-Id": id, "X-Content-Type-Options": "nosniff", "Content-Type": "application/problem+json",
		} {
			wantEqual(t, name, answered.Header.Get(name), want)
		}
		must(io.WriteString(conn, plainRequest))(t)
		next := must(http.ReadResponse(conn.Reader, nil))(t)
		if _, err := io.Copy(io.Discard, next.Body); next.StatusCode != 200 || err != nil {
			t.Errorf("the next request is answered %d, %v", next.StatusCode, err)
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
	r := runServer(t, withoutStore, Config{Limits: Limits{Off: true}})
	client := from(t, "")
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for range 10 {
				answered, err := client.Post("http://"+r.address+"/v1/organizations", "application/json", strings.NewReader(`{"name":"n"}`))
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

// panicking is an error whose text cannot be read.
type panicking struct{}

func (panicking) Error() string { panic("no words") }

// A request without a connection makes each of them panic.
func TestAPanicOutsideAHandlerEndsNothingAndIsCountedAsWhatItIsAnswered(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	s := New(Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	unreadable, expecting, refused := &fasthttp.RequestCtx{}, &fasthttp.RequestCtx{}, &fasthttp.RequestCtx{}
	s.front.HTTP.ErrorHandler(unreadable, io.ErrUnexpectedEOF)
	wantEqual(t, "an expectation", s.front.HTTP.ExpectHandler(expecting), 500)
	wantEqual(t, "a refused expectation", s.front.RefuseExpectation(refused, panicking{}), 500)
	for name, ctx := range map[string]*fasthttp.RequestCtx{"what cannot be read": unreadable, "an expectation": expecting, "a refused one": refused} {
		if ctx.Response.StatusCode() != 500 || !strings.Contains(string(ctx.Response.Body()), "internal_error") {
			t.Errorf("%s: %d %s", name, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	s.front.HTTP.HeaderReceived(nil)
	wantEqual(t, "panics that are logged", log.count("panicked\" "), 4)
	told := toldBy(t, s.registry, "remit_http_requests_total")
	for _, series := range []string{"method=other route=none status=500", "method=GET route=none status=500"} {
		if told[series] != 1 {
			t.Errorf("%s is not counted once: %v", series, told)
		}
	}
}
