package server

import (
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// turnedAway counts the calls that found no place in the row for Redis. What can be tens of thousands in a second must
// cost little, in the log too: a second after the first of them one line tells how many there were.
type turnedAway struct {
	calls atomic.Int64
	due   atomic.Bool // the line is

	mu    sync.Mutex
	timer *time.Timer
	cause string // of the first
}

const tellEvery = time.Second

func (t *turnedAway) note(log *slog.Logger, err error) {
	t.calls.Add(1)
	if t.due.Load() || !t.due.CompareAndSwap(false, true) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cause = err.Error()
	t.timer = time.AfterFunc(tellEvery, func() { t.tell(log) })
}

// tell lets the next line be due before it reads the count: a call that is noted meanwhile is in one of the two.
func (t *turnedAway) tell(log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due.Store(false)
	if calls := t.calls.Swap(0); calls > 0 {
		log.Warn("calls turned away", "code", "unavailable", "calls", calls, "cause", t.cause)
	}
}

// end tells at once what is left to tell.
func (t *turnedAway) end(log *slog.Logger) {
	t.mu.Lock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.tell(log)
}

func isOverloaded(err error) bool { return errors.Is(err, redisstore.ErrOverloaded) }

const overloadedDetail = "more is asked than can be done now; nothing was changed"

var overloadedStart, overloadedEnd = []byte(`{"type":"urn:remit:problem:unavailable","title":"` + titles["unavailable"] +
	`","status":503,"detail":"` + overloadedDetail + `","code":"unavailable","request_id":"`), []byte(`"}`)

// answerOverloaded is answerProblem for a call that was turned away, written out.
func (s *Server) answerOverloaded(ctx *fasthttp.RequestCtx, err error) {
	s.counts.shed.Add(1)
	s.turnedAway.note(s.log, err)
	a := askedOf(ctx)
	a.code, a.turnedAway = "unavailable", true
	id := ctx.Response.Header.Peek(headerRequestID)
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(retryLater))
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
	ctx.Response.AppendBody(overloadedStart)
	ctx.Response.AppendBody(id)
	ctx.Response.AppendBody(overloadedEnd)
}
