package web

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

// Each request has one span, a child of the caller's span if the request names one (W3C Trace Context). It carries the
// route but no path, query, body or header: paths contain ids, and the rest may contain credentials.

const (
	HeaderTraceParent   = "Traceparent" // in the canonical form of fasthttp
	headerTraceState    = "Tracestate"
	HeaderTraceResponse = "Traceresponse" // the span of the response, in the format of traceparent

	// maxTraceState bounds the state of other systems that is passed on (the least that the standard allows). Every span
	// carries it, so a larger bound would let a client make the service send and store much.
	maxTraceState = 512
)

// traceHeaders reads the trace context of a request.
type traceHeaders struct{ *fasthttp.RequestHeader }

// Get implements propagation.TextMapCarrier.
func (h traceHeaders) Get(name string) string {
	lines := h.PeekAll(name)
	if len(lines) > 1 && name == "traceparent" { // ambiguous
		return ""
	}
	value := bytes.Join(lines, []byte(","))
	if len(value) > maxTraceState {
		return ""
	}
	return string(value)
}

// Set implements propagation.TextMapCarrier. Nothing is propagated from here.
func (h traceHeaders) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (h traceHeaders) Keys() []string { return []string{HeaderTraceParent, headerTraceState} }

// beginTrace starts the span of a request, and names it in the response.
func (f *Front) beginTrace(ctx *fasthttp.RequestCtx) {
	info := InfoOf(ctx)
	callers := context.Background()
	if !f.Restarts {
		callers = propagation.TraceContext{}.Extract(callers, traceHeaders{&ctx.Request.Header})
	}
	var span trace.Span
	info.traced, span = f.Tracer.Start(callers, "HTTP", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(info.Began))
	own := span.SpanContext()
	ctx.Response.Header.Set(HeaderTraceResponse, "00-"+own.TraceID().String()+"-"+own.SpanID().String()+"-"+own.TraceFlags().String())
}

// endTrace ends the span with everything known about the request.
func endTrace(ctx *fasthttp.RequestCtx, info *RequestInfo) {
	span := trace.SpanFromContext(info.traced)
	if !span.IsRecording() {
		return
	}
	method, status := info.method(ctx), ctx.Response.StatusCode()
	span.SetName(method)
	attributes := make([]attribute.KeyValue, 0, 9)
	attributes = append(attributes, semconv.HTTPRequestMethodKey.String(method), semconv.HTTPResponseStatusCode(status), semconv.URLScheme(schemeOf(ctx)),
		semconv.NetworkProtocolVersion(versionOf(ctx)), attribute.String("remit.request_id", RequestID(ctx)))
	if info.Route != "" {
		attributes = append(attributes, semconv.HTTPRoute(info.Route))
		span.SetName(method + " " + info.Route)
	}
	if info.Organization != uuid.Nil {
		attributes = append(attributes, attribute.String("remit.organization_id", info.Organization.String()))
	}
	if info.Agent != uuid.Nil {
		attributes = append(attributes, attribute.String("remit.agent_id", info.Agent.String()))
	}
	if info.Actor != uuid.Nil {
		attributes = append(attributes, attribute.String("remit.actor_id", info.Actor.String()))
	}
	if info.Code != "" {
		attributes = append(attributes, semconv.ErrorTypeKey.String(info.Code))
	}
	if status >= 500 { // lower statuses are client errors
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
