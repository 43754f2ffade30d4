package redistest

import (
	"context"
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// SpanRecorder keeps the spans that Tracer starts.
type SpanRecorder struct {
	*tracetest.SpanRecorder
	Tracer trace.Tracer
}

// NewSpanRecorder returns a recorder without spans.
func NewSpanRecorder() SpanRecorder {
	spans := tracetest.NewSpanRecorder()
	return SpanRecorder{spans, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")}
}

// Request calls do within a span, as a request does, and returns the spans below it in the order of their start.
func (r SpanRecorder) Request(do func(context.Context)) []sdktrace.ReadOnlySpan {
	ctx, span := r.Tracer.Start(context.Background(), "request")
	do(ctx)
	span.End()
	var below []sdktrace.ReadOnlySpan
	for _, s := range r.Ended() {
		if s.Parent().SpanID() == span.SpanContext().SpanID() && s.SpanContext().TraceID() == span.SpanContext().TraceID() {
			below = append(below, s)
		}
	}
	slices.SortFunc(below, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return below
}

// AttributeOf returns the text of a span's attribute, "" for none.
func AttributeOf(s sdktrace.ReadOnlySpan, name string) string {
	for _, a := range s.Attributes() {
		if string(a.Key) == name {
			return a.Value.String()
		}
	}
	return ""
}

// NamesOf returns the names of spans.
func NamesOf(spans []sdktrace.ReadOnlySpan) []string {
	var names []string
	for _, s := range spans {
		names = append(names, s.Name())
	}
	return names
}
