package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// shedCall answers a request whose call was shed.
func shedCall(s *Server, err error) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.Set(web.HeaderRequestID, "asked-1")
	s.front.StartRequest(ctx)
	s.front.AnswerProblem(ctx, err)
	return ctx
}

// What is written out by hand must say what the table says.
func TestThePreparedOverloadResponseMatchesTheProblemTable(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	want := problemOf(redisstore.ErrOverloaded)
	want.RequestID = "asked-1"
	for name, err := range map[string]error{
		"plain": redisstore.ErrOverloaded, "with its cause": fmt.Errorf("%w: why", redisstore.ErrOverloaded),
		"to a proxy": s.guard.AtSubrequest(redisstore.ErrOverloaded),
	} {
		ctx := shedCall(s, err)
		var got web.Problem
		if err := json.Unmarshal(ctx.Response.Body(), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || want.Status != 503 || want.Code != "unavailable" {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		header := &ctx.Response.Header
		if ctx.Response.StatusCode() != 503 || string(header.ContentType()) != "application/problem+json" ||
			string(header.Peek("Retry-After")) != "1" || string(header.Peek(web.HeaderRequestID)) != "asked-1" {
			t.Errorf("%s: %d %s", name, ctx.Response.StatusCode(), header)
		}
	}
}

func TestTheAccessLogDistinguishesShedFromFailedRequests(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := New(Config{Log: slog.New(slog.DiscardHandler), AccessLog: AccessLog{Log: slog.New(slog.NewTextHandler(&log, nil)), Every: 1}})
	for _, err := range []error{redisstore.ErrOverloaded, access.ErrNoKeyring} { // both 503
		s.front.FinishRequest(shedCall(s, err))
	}
	lines := strings.SplitAfter(log.String(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], " status=503 code=unavailable shed=true ") || strings.Contains(lines[1], "shed") {
		t.Errorf("it says %q", lines)
	}
}

func TestManyShedCallsAreOneLogLine(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	s := New(Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	for range 1000 {
		shedCall(s, redisstore.ErrOverloaded)
	}
	await(t, "1000 calls are logged", func() bool { return shedIn(t, log) == 1000 }) // though none comes after them
	if lines := strings.Count(log.String(), "\n"); lines > 10 {
		t.Errorf("%d lines for 1000", lines)
	}
	shedCall(s, redisstore.ErrOverloaded)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	wantEqual(t, "shed calls that are logged at the end", shedIn(t, log), 1001)
}

var shedLines = regexp.MustCompile(`msg="calls shed" code=unavailable calls=(\d+) cause=`)

// shedIn returns the number of calls in the log.
func shedIn(t *testing.T, log *lockedBuffer) (calls int) {
	t.Helper()
	for _, line := range shedLines.FindAllStringSubmatch(log.String(), -1) {
		calls += must(strconv.Atoi(line[1]))(t)
	}
	return calls
}
