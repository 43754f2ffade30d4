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
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "gateway request", append(e.logged(), e.loggedCaller()...)...)
}

// field is a text in a line.
type field struct{ name, value string }

// given returns the fields that are not empty.
func given(fields ...field) (line []slog.Attr) {
	for _, one := range fields {
		if one.value != "" {
			line = append(line, slog.String(one.name, one.value))
		}
	}
	return line
}

// logged returns what a line says of an exchange, but for who called.
func (e *exchange) logged() []slog.Attr {
	r := &e.report
	line := given(field{"request_id", e.id}, field{"method", knownMethod(e.request.Method)}, field{"upstream", e.upstreamName()})
	if e.target.route != nil {
		line = append(line, slog.String("route", e.target.route.pattern))
	}
	line = append(line, slog.Int("status", r.status))
	line = append(line, given(field{"code", r.code}, field{"model", r.model}, field{"settled_by", r.outcome})...)
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
	return line
}

// loggedCaller returns what a line says of who called.
func (e *exchange) loggedCaller() (line []slog.Attr) {
	for _, one := range []struct {
		name string
		id   uuid.UUID
	}{{"organization_id", e.caller.Organization}, {"agent_id", e.caller.Agent}, {"session_id", e.caller.session}} {
		if one.id != uuid.Nil {
			line = append(line, slog.String(one.name, one.id.String()))
		}
	}
	host, _, _ := net.SplitHostPort(e.request.RemoteAddr) // "" for none
	return append(line, given(field{"client", host}, field{"trace_id", e.traceID()})...)
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
