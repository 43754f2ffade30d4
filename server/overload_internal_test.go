package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// turnAway answers a request whose call was turned away.
func turnAway(s *Server, err error) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.Set(headerRequestID, "asked-1")
	s.begin(ctx)
	s.answerProblem(ctx, err)
	return ctx
}

// What is written out by hand must say what the table says.
func TestTheQuickAnswerToOverloadIsTheProblemOfTheTable(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	want := problemOf(redisstore.ErrOverloaded)
	want.RequestID = "asked-1"
	for name, err := range map[string]error{
		"plain": redisstore.ErrOverloaded, "with its cause": fmt.Errorf("%w: why", redisstore.ErrOverloaded),
		"to a gateway": &gatewayError{redisstore.ErrOverloaded},
	} {
		ctx := turnAway(s, err)
		var got problem
		if err := json.Unmarshal(ctx.Response.Body(), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || want.Status != 503 || want.Code != "unavailable" {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		header := &ctx.Response.Header
		if ctx.Response.StatusCode() != 503 || string(header.ContentType()) != "application/problem+json" ||
			string(header.Peek("Retry-After")) != "1" || string(header.Peek(headerRequestID)) != "asked-1" {
			t.Errorf("%s: %d %s", name, ctx.Response.StatusCode(), header)
		}
	}
}

func TestManyThatAreTurnedAwayAreOneLineOfTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 1000 {
		turnAway(s, redisstore.ErrOverloaded)
	}
	if lines := strings.Count(log.String(), "\n"); lines < 1 || lines > 10 {
		t.Errorf("%d lines for 1000", lines)
	}
	s.turnedAway.toldAt.Store(0)
	turnAway(s, redisstore.ErrOverloaded)
	if !strings.Contains(log.String(), "calls turned away") || s.turnedAway.calls.Load() != 0 {
		t.Errorf("%d are not told of: %s", s.turnedAway.calls.Load(), &log)
	}
}
