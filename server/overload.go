package server

import (
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// turnedAway counts the calls that found no place in the row for Redis. What can be tens of thousands in a second must
// cost little, in the log too: it is told once a second.
type turnedAway struct {
	calls  atomic.Int64
	toldAt atomic.Int64 // Unix time in ns
}

const tellEvery = time.Second

func (t *turnedAway) note(log *slog.Logger, err error) {
	t.calls.Add(1)
	now, last := time.Now().UnixNano(), t.toldAt.Load()
	if now-last < int64(tellEvery) || !t.toldAt.CompareAndSwap(last, now) {
		return
	}
	log.Warn("calls turned away", "code", "unavailable", "calls", t.calls.Swap(0), "cause", err.Error())
}

func isOverloaded(err error) bool { return errors.Is(err, redisstore.ErrOverloaded) }

const overloadedDetail = "more is asked than can be done now; nothing was changed"

var overloadedStart, overloadedEnd = []byte(`{"type":"urn:remit:problem:unavailable","title":"` + titles["unavailable"] +
	`","status":503,"detail":"` + overloadedDetail + `","code":"unavailable","request_id":"`), []byte(`"}`)

// answerOverloaded is answerProblem for a call that was turned away, written out.
func (s *Server) answerOverloaded(ctx *fasthttp.RequestCtx, err error) {
	s.turnedAway.note(s.log, err)
	id := ctx.Response.Header.Peek(headerRequestID)
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(retryLater))
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
	ctx.Response.AppendBody(overloadedStart)
	ctx.Response.AppendBody(id)
	ctx.Response.AppendBody(overloadedEnd)
}
