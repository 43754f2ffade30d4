package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// accessLog logs requests, without a byte of a prompt, an answer, a header or a path: the route and the model are names that the gateway
// knows.
type accessLog struct {
	log   *slog.Logger // nil: nothing
	every uint64
	count atomic.Uint64
}

func (l *accessLog) write(e *exchange) {
	if l.log == nil || e.report.status < http.StatusInternalServerError && (l.every == 0 || (l.count.Add(1)-1)%l.every != 0) {
		return
	}
	r := &e.report
	line := []slog.Attr{slog.String("request_id", e.id), slog.String("method", knownMethod(e.request.Method))}
	if e.target.upstream != nil {
		line = append(line, slog.String("upstream", e.target.upstream.Name))
	}
	if e.target.route != nil {
		line = append(line, slog.String("route", e.target.route.pattern))
	}
	line = append(line, slog.Int("status", r.status))
	for _, text := range []struct{ name, value string }{{"code", r.code}, {"model", r.model}, {"settled_by", r.outcome}} {
		if text.value != "" {
			line = append(line, slog.String(text.name, text.value))
		}
	}
	if r.held > 0 {
		line = append(line, slog.String("held_usd", r.held.String()))
	}
	line = append(line, slog.Float64("duration_ms", milliseconds(time.Since(e.began))))
	if r.firstByte > 0 {
		line = append(line, slog.Float64("first_byte_ms", milliseconds(r.firstByte)))
	}
	if r.hungUp {
		line = append(line, slog.Bool("hung_up", true))
	}
	if r.cause != nil {
		line = append(line, slog.String("cause", r.cause.Error()))
	}
	for _, id := range []struct {
		name string
		id   uuid.UUID
	}{{"organization_id", e.caller.Organization}, {"agent_id", e.caller.Agent}, {"session_id", e.caller.session}} {
		if id.id != uuid.Nil {
			line = append(line, slog.String(id.name, id.id.String()))
		}
	}
	if host, _, err := net.SplitHostPort(e.request.RemoteAddr); err == nil {
		line = append(line, slog.String("client", host))
	}
	if id := e.traceID(); id != "" {
		line = append(line, slog.String("trace_id", id))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "gateway request", line...)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// knownMethod returns _OTHER for a method that a client made up.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}
