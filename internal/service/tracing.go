package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// traceFlags say where traces are sent. OpenTelemetry's SDK reads everything else (sampling, headers, certificates, the
// resource) from its standard environment variables.
type traceFlags struct {
	OTLPEndpoint string `name:"otlp-endpoint" help:"URL of an OpenTelemetry collector (OTLP over HTTP), such as http://localhost:4318. Without it and OTEL_EXPORTER_OTLP_ENDPOINT tracing is off."`
}

func (f traceFlags) check() error {
	if f.OTLPEndpoint == "" {
		return nil
	}
	if collector, err := url.Parse(f.OTLPEndpoint); err != nil || collector.Host == "" || collector.Scheme != "http" && collector.Scheme != "https" {
		return errors.New("--otlp-endpoint must be an http or https URL")
	}
	return nil
}

// enabled reports whether the flag and the standard variables turn tracing on.
func (f traceFlags) enabled() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return f.OTLPEndpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// restarts reports whether traces ignore a request's traceparent header, because OTEL_PROPAGATORS leaves out tracecontext.
func (traceFlags) restarts() bool {
	propagators := os.Getenv("OTEL_PROPAGATORS")
	return propagators != "" && !slices.ContainsFunc(strings.Split(propagators, ","), func(name string) bool {
		return strings.TrimSpace(name) == "tracecontext"
	})
}

// exporterOptions returns what the flag adds to the variables. As with OTEL_EXPORTER_OTLP_ENDPOINT, the signal's path is
// appended to the URL.
func (f traceFlags) exporterOptions() ([]otlptracehttp.Option, error) {
	if f.OTLPEndpoint == "" {
		return nil, nil
	}
	full, err := url.JoinPath(f.OTLPEndpoint, "v1/traces")
	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(full)}, err
}

// traces send spans to a collector. The zero value sends none.
type traces struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
}

// open returns the traces; flush them at the end. Spans wait in a bounded queue (OTEL_BSP_MAX_QUEUE_SIZE). While it is full
// because the collector does not keep up, new spans are dropped and no request waits.
func (f traceFlags) open(ctx context.Context, log *slog.Logger) (traces, error) {
	if !f.enabled() {
		return traces{}, nil
	}
	logTraceErrors(log)
	options, err := f.exporterOptions()
	if err != nil {
		return traces{}, err
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return traces{}, fmt.Errorf("cannot export traces: %w", err)
	}
	if protocol := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		log.Warn("traces are sent as http/protobuf; OTEL_EXPORTER_OTLP_PROTOCOL is ignored", "protocol", protocol)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(ownResource(ctx)))
	return traces{provider.Tracer("remit"), provider}, nil
}

// ownResource describes the sender of the spans. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func ownResource(ctx context.Context) *resource.Resource {
	attributes := resource.WithAttributes(semconv.ServiceName("remit"), semconv.ServiceVersion(release()))
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), attributes, resource.WithFromEnv())
	if err != nil {
		otel.Handle(err)
	}
	return described
}

// flush sends the queued spans, unless that takes longer than flushTime/2.
func (t traces) flush(log *slog.Logger) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime/2)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Warn("the last spans were not sent", "cause", err)
	}
}

// traceErrorInterval is the least time between two log lines about failed exports. An unreachable collector fails every few
// seconds.
const traceErrorInterval = time.Minute

// logTraceErrors sends OpenTelemetry's own messages and errors to the log.
func logTraceErrors(log *slog.Logger) {
	otel.SetLogger(logr.New(sdkLog{log}))
	otel.SetErrorHandler(&traceErrors{log: log, now: time.Now})
}

// sdkLog is OpenTelemetry's logger. It drops the values of a message, because they include settings such as headers, which
// hold credentials.
type sdkLog struct{ log *slog.Logger }

// Init implements logr.LogSink.
func (sdkLog) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (l sdkLog) Enabled(level int) bool {
	return l.log.Enabled(context.Background(), slog.Level(-level))
}

// Info implements logr.LogSink.
func (l sdkLog) Info(level int, message string, _ ...any) {
	l.log.Log(context.Background(), slog.Level(-level), "OpenTelemetry: "+message)
}

// Error implements logr.LogSink.
func (l sdkLog) Error(err error, message string, _ ...any) {
	l.log.Error("OpenTelemetry: "+message, "cause", withoutQuotes(err))
}

// WithValues implements logr.LogSink.
func (l sdkLog) WithValues(...any) logr.LogSink { return l }

// WithName implements logr.LogSink.
func (l sdkLog) WithName(string) logr.LogSink { return l }

// withoutQuotes replaces errors that quote a setting: a URL, which may hold a password, or a part of a header's value.
func withoutQuotes(err error) error {
	var whole *url.Error
	var escape url.EscapeError
	if errors.As(err, &whole) || errors.As(err, &escape) {
		return errors.New("a setting is malformed")
	}
	return err
}

// traceErrors logs one error a minute, with the number of errors dropped since the last.
type traceErrors struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	logged  time.Time // the last time
	dropped int
}

// Handle implements otel.ErrorHandler.
func (t *traceErrors) Handle(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.logged.IsZero() || now.Sub(t.logged) >= traceErrorInterval {
		t.log.Warn("exporting traces failed", "cause", err, "dropped", t.dropped)
		t.logged, t.dropped = now, 0
		return
	}
	t.dropped++
}
