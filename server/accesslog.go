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

// accessLog logs requests. Of what a client chose it logs only the request id, whose characters cannot end or forge a line:
// no path, query or header.
type accessLog struct {
	log   *slog.Logger
	every uint64
	count atomic.Uint64 // of the requests to sample
}

// newAccessLog returns a log of one in every requests that did not fail, 0 for none, and of all that failed. Nil for a log that
// writes nothing.
func newAccessLog(log *slog.Logger, every uint64) *accessLog {
	if log == nil || !log.Enabled(context.Background(), slog.LevelInfo) {
		return nil
	}
	return &accessLog{log: log, every: every}
}

// picks reports whether to log a request.
func (l *accessLog) picks(status int, info *requestInfo) bool {
	if status >= 500 && !info.shed {
		return true
	}
	return l.every > 0 && (l.count.Add(1)-1)%l.every == 0
}

// write logs a request when it ends.
func (l *accessLog) write(ctx *fasthttp.RequestCtx, info *requestInfo, client netip.Addr) {
	status := ctx.Response.StatusCode()
	var room [13]slog.Attr
	line := append(room[:0], slog.String("request_id", requestID(ctx)), slog.String("method", info.method(ctx)),
		slog.String("route", info.route), slog.Int("status", status))
	if info.code != "" {
		line = append(line, slog.String("code", info.code))
	}
	if info.shed { // sampled, unlike other 5xx
		line = append(line, slog.Bool("shed", true))
	}
	line = append(line, slog.Float64("duration_ms", float64(time.Since(info.began).Microseconds())/1000))
	if !ctx.Response.IsBodyStream() && !ctx.IsHead() {
		line = append(line, slog.Int("bytes", len(ctx.Response.Body())))
	}
	if info.organization != uuid.Nil {
		line = append(line, slog.String("organization_id", info.organization.String()))
	}
	if info.agent != uuid.Nil {
		line = append(line, slog.String("agent_id", info.agent.String()))
	}
	if info.actor != uuid.Nil {
		line = append(line, slog.String("actor_id", info.actor.String()))
	}
	if client.IsValid() {
		line = append(line, slog.String("client", client.String()))
	}
	if id := info.traceID(); id != "" {
		line = append(line, slog.String("trace_id", id))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "request", line...)
}
