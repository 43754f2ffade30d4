package web

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// AccessLog logs requests. Of what a client chose it logs only the request id, whose characters cannot end or forge a line:
// no path, query or header.
type AccessLog struct {
	log   *slog.Logger
	every uint64
	count atomic.Uint64 // of the requests to sample
}

// NewAccessLog returns a log of one in every requests that did not fail, 0 for none, and of all that failed. Nil for a log that
// writes nothing.
func NewAccessLog(log *slog.Logger, every uint64) *AccessLog {
	if log == nil || !log.Enabled(context.Background(), slog.LevelInfo) {
		return nil
	}
	return &AccessLog{log: log, every: every}
}

// picks reports whether to log a request.
func (l *AccessLog) picks(status int, info *RequestInfo) bool {
	if status >= 500 && !info.Shed {
		return true
	}
	return l.every > 0 && (l.count.Add(1)-1)%l.every == 0
}

// write logs a request when it ends.
func (l *AccessLog) write(ctx *fasthttp.RequestCtx, info *RequestInfo, client netip.Addr) {
	status := ctx.Response.StatusCode()
	var room [13]slog.Attr
	line := append(room[:0], slog.String("request_id", RequestID(ctx)), slog.String("method", info.method(ctx)),
		slog.String("route", info.Route), slog.Int("status", status))
	if info.Code != "" {
		line = append(line, slog.String("code", info.Code))
	}
	if info.Shed { // sampled, unlike other 5xx
		line = append(line, slog.Bool("shed", true))
	}
	line = append(line, slog.Float64("duration_ms", float64(time.Since(info.Began).Microseconds())/1000))
	if !ctx.Response.IsBodyStream() && !ctx.IsHead() {
		line = append(line, slog.Int("bytes", len(ctx.Response.Body())))
	}
	if info.Organization != uuid.Nil {
		line = append(line, slog.String("organization_id", info.Organization.String()))
	}
	if info.Agent != uuid.Nil {
		line = append(line, slog.String("agent_id", info.Agent.String()))
	}
	if info.Actor != uuid.Nil {
		line = append(line, slog.String("actor_id", info.Actor.String()))
	}
	if client.IsValid() {
		line = append(line, slog.String("client", client.String()))
	}
	if id := info.traceID(); id != "" {
		line = append(line, slog.String("trace_id", id))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "request", line...)
}
