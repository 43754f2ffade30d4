package server

import (
	"bytes"
	"context"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// One span for each request, a child of the caller's when the request says so (W3C Trace Context). It tells the route and
// never the path, query, body or any header: ids in paths are many, and the rest may be credentials.

const (
	headerTraceParent   = "Traceparent" // as fasthttp writes names
	headerTraceState    = "Tracestate"
	headerTraceResponse = "Traceresponse" // the span of the answer, written as in traceparent

	// maxTraceState is how much of other systems' state is handed on (the standard's least). Each span is sent with it, so
	// that more would let a client make the service send and keep much.
	maxTraceState = 512
)

// traceHeaders reads what a request says of its trace.
type traceHeaders struct{ *fasthttp.RequestHeader }

// Get implements propagation.TextMapCarrier.
func (h traceHeaders) Get(name string) string {
	lines := h.PeekAll(name)
	if len(lines) > 1 && name == "traceparent" { // which one is meant?
		return ""
	}
	value := bytes.Join(lines, []byte(","))
	if len(value) > maxTraceState {
		return ""
	}
	return string(value)
}

// Set implements propagation.TextMapCarrier. Nothing is sent on from here.
func (h traceHeaders) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (h traceHeaders) Keys() []string { return []string{headerTraceParent, headerTraceState} }

// beginTrace begins the request's span, and tells the client of it.
func (s *Server) beginTrace(ctx *fasthttp.RequestCtx) {
	a := askedOf(ctx)
	callers := context.Background()
	if !s.restarts {
		callers = propagation.TraceContext{}.Extract(callers, traceHeaders{&ctx.Request.Header})
	}
	var span trace.Span
	a.traced, span = s.tracer.Start(callers, "HTTP", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(a.began))
	own := span.SpanContext()
	ctx.Response.Header.Set(headerTraceResponse, "00-"+own.TraceID().String()+"-"+own.SpanID().String()+"-"+own.TraceFlags().String())
}

// endTrace ends it, with all that has become known.
func endTrace(ctx *fasthttp.RequestCtx, a *asked) {
	span := trace.SpanFromContext(a.traced)
	if !span.IsRecording() {
		return
	}
	method, status := a.method(ctx), ctx.Response.StatusCode()
	span.SetName(method)
	attributes := make([]attribute.KeyValue, 0, 9)
	attributes = append(attributes, semconv.HTTPRequestMethodKey.String(method), semconv.HTTPResponseStatusCode(status), semconv.URLScheme(schemeOf(ctx)),
		semconv.NetworkProtocolVersion(versionOf(ctx)), attribute.String("remit.request_id", requestID(ctx)))
	if a.route != "" {
		attributes = append(attributes, semconv.HTTPRoute(a.route))
		span.SetName(method + " " + a.route)
	}
	if a.organization != uuid.Nil {
		attributes = append(attributes, attribute.String("remit.organization_id", a.organization.String()))
	}
	if a.agent != uuid.Nil {
		attributes = append(attributes, attribute.String("remit.agent_id", a.agent.String()))
	}
	if a.code != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(a.code))
	}
	if status >= 500 { // what is below is the client's
		span.SetStatus(codes.Error, "")
	}
	span.SetAttributes(attributes...)
	span.End()
}

func schemeOf(ctx *fasthttp.RequestCtx) string {
	if ctx.IsTLS() {
		return "https"
	}
	return "http"
}

func versionOf(ctx *fasthttp.RequestCtx) string {
	if ctx.Request.Header.IsHTTP11() {
		return "1.1"
	}
	return "1.0"
}
