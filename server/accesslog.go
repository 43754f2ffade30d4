package server

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// AccessLog says which requests are told of, and where: one line for each, at the level info.
type AccessLog struct {
	Log *slog.Logger // nil: of none
	// Every is that of the requests which did not fail every so-manieth is told of: 1 for all, 0 for none. Those that failed
	// (5xx) are told of all, but for those that were turned away because there were too many.
	Every uint64
}

// accessLog tells of requests. It says nothing that a client chose but the request id, and that has no byte that could end
// or forge a line: no path, no query, no header.
type accessLog struct {
	log   *slog.Logger
	every uint64
	count atomic.Uint64 // of the requests that did not fail
}

func newAccessLog(c AccessLog) *accessLog {
	if c.Log == nil || !c.Log.Enabled(context.Background(), slog.LevelInfo) {
		return nil
	}
	return &accessLog{log: c.Log, every: c.Every}
}

// picks says whether a request is one to tell of.
func (l *accessLog) picks(status int, a *asked) bool {
	if status >= 500 && !a.turnedAway {
		return true
	}
	return l.every > 0 && (l.count.Add(1)-1)%l.every == 0
}

// note tells of a request that was answered, or not.
func (l *accessLog) write(ctx *fasthttp.RequestCtx, a *asked, client netip.Addr) {
	status := ctx.Response.StatusCode()
	var room [13]slog.Attr
	line := append(room[:0], slog.String("request_id", requestID(ctx)), slog.String("method", a.method(ctx)),
		slog.String("route", a.route), slog.Int("status", status))
	if a.code != "" {
		line = append(line, slog.String("code", a.code))
	}
	if a.turnedAway { // of the sample, unlike others of the status
		line = append(line, slog.Bool("shed", true))
	}
	line = append(line, slog.Float64("duration_ms", float64(time.Since(a.began).Microseconds())/1000))
	if !ctx.Response.IsBodyStream() && !ctx.IsHead() {
		line = append(line, slog.Int("bytes", len(ctx.Response.Body())))
	}
	if a.organization != uuid.Nil {
		line = append(line, slog.String("organization_id", a.organization.String()))
	}
	if a.agent != uuid.Nil {
		line = append(line, slog.String("agent_id", a.agent.String()))
	}
	if client.IsValid() {
		line = append(line, slog.String("client", client.String()))
	}
	if id := a.traceID(); id != "" {
		line = append(line, slog.String("trace_id", id))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "request", line...)
}
