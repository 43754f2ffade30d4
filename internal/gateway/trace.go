package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// maxTraceState bounds the state of other systems that is passed on, as at the service.
const maxTraceState = 512

// startTrace begins the span of a request, a child of its caller's, and names it in the answer, as the service does. It has no path, query,
// body or header, and no header of it goes to the provider.
func (e *exchange) startTrace() {
	if e.gateway.tracer == nil {
		return
	}
	callers := context.Background()
	if parents := e.request.Header.Values("Traceparent"); !e.gateway.restart && len(parents) == 1 {
		of := propagation.MapCarrier{"traceparent": parents[0]}
		if state := strings.Join(e.request.Header.Values("Tracestate"), ","); len(state) <= maxTraceState {
			of["tracestate"] = state
		}
		callers = propagation.TraceContext{}.Extract(callers, of)
	}
	_, e.span = e.gateway.tracer.Start(callers, "gateway", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(e.began))
	e.writer.Header().Set("Traceresponse", e.traceParent())
}

// traceParent returns the span, for the API's own spans below it; "" without one.
func (e *exchange) traceParent() string {
	if e.span == nil {
		return ""
	}
	own := e.span.SpanContext()
	return "00-" + own.TraceID().String() + "-" + own.SpanID().String() + "-" + own.TraceFlags().String()
}

func (e *exchange) traceID() string {
	if e.span == nil || !e.span.SpanContext().IsSampled() {
		return ""
	}
	return e.span.SpanContext().TraceID().String()
}

func (e *exchange) endTrace() {
	if e.span == nil {
		return
	}
	r := &e.report
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(knownMethod(e.request.Method)), semconv.HTTPResponseStatusCode(r.status), semconv.URLScheme(e.scheme()),
		semconv.NetworkProtocolVersion(e.protocolVersion()), attribute.String("remit.request_id", e.id),
	}
	for _, one := range []struct{ name, value string }{
		{"remit.upstream", e.upstreamName()}, {"gen_ai.request.model", r.model}, {"remit.settled_by", r.outcome}, {string(semconv.ErrorTypeKey), r.code},
	} {
		if one.value != "" {
			attributes = append(attributes, attribute.String(one.name, one.value))
		}
	}
	if e.caller.Organization != uuid.Nil {
		attributes = append(attributes, attribute.String("remit.organization_id", e.caller.Organization.String()),
			attribute.String("remit.agent_id", e.caller.Agent.String()))
	}
	if e.target.route != nil {
		e.span.SetName(knownMethod(e.request.Method) + " " + e.target.route.pattern)
		attributes = append(attributes, semconv.HTTPRoute(e.target.route.pattern))
	}
	if r.status >= http.StatusInternalServerError {
		e.span.SetStatus(codes.Error, "")
	}
	e.span.SetAttributes(attributes...)
	e.span.End()
}

// traced returns a context of the span, for round trips to Redis below it.
func (e *exchange) traced() context.Context {
	if e.span == nil {
		return context.Background()
	}
	return trace.ContextWithSpan(context.Background(), e.span)
}

func (e *exchange) scheme() string {
	if e.request.TLS != nil {
		return "https"
	}
	return "http"
}

func (e *exchange) protocolVersion() string {
	if e.request.ProtoMajor == 2 {
		return "2"
	}
	return strings.TrimPrefix(e.request.Proto, "HTTP/")
}

func (e *exchange) upstreamName() string {
	if e.target.upstream == nil {
		return ""
	}
	return e.target.upstream.Name
}
