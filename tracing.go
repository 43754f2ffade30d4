package main

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

// traceFlags say where traces go. All else that can be said about them has a variable of OpenTelemetry's own, which its SDK
// reads: sampling, headers, certificates, the resource.
type traceFlags struct {
	OTLPEndpoint string `name:"otlp-endpoint" help:"URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://localhost:4318. Without it, and without OTEL_EXPORTER_OTLP_ENDPOINT, there are no traces."`
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

// wanted says whether there are to be traces.
func (f traceFlags) wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return f.OTLPEndpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// restarts says whether a request's traceparent is not to be heard, by OTEL_PROPAGATORS, whose standard value has tracecontext.
func (traceFlags) restarts() bool {
	propagators := os.Getenv("OTEL_PROPAGATORS")
	return propagators != "" && !slices.ContainsFunc(strings.Split(propagators, ","), func(name string) bool {
		return strings.TrimSpace(name) == "tracecontext"
	})
}

// exporterOptions are what the flag adds to the variables. As of OTEL_EXPORTER_OTLP_ENDPOINT, the path goes on.
func (f traceFlags) exporterOptions() ([]otlptracehttp.Option, error) {
	if f.OTLPEndpoint == "" {
		return nil, nil
	}
	full, err := url.JoinPath(f.OTLPEndpoint, "v1/traces")
	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(full)}, err
}

// traces are on their way to a collector. The zero value has none.
type traces struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
}

// open returns the traces, to be flushed at the end. Spans wait in a queue of bounded length (OTEL_BSP_MAX_QUEUE_SIZE); when
// the collector does not take them, those that come then are lost, and no request waits.
func (f traceFlags) open(ctx context.Context, log *slog.Logger) (traces, error) {
	if !f.wanted() {
		return traces{}, nil
	}
	hearTroubleOfTraces(log)
	options, err := f.exporterOptions()
	if err != nil {
		return traces{}, err
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return traces{}, fmt.Errorf("cannot export traces: %w", err)
	}
	if spoken := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); spoken != "" && spoken != "http/protobuf" {
		log.Warn("traces are sent as http/protobuf, whatever OTEL_EXPORTER_OTLP_PROTOCOL says", "protocol", spoken)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(ownResource(ctx)))
	return traces{provider.Tracer("remit"), provider}, nil
}

// ownResource says who sends the spans. What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say goes first.
func ownResource(ctx context.Context) *resource.Resource {
	attributes := resource.WithAttributes(semconv.ServiceName("remit"), semconv.ServiceVersion(release()))
	described, err := resource.New(ctx, resource.WithTelemetrySDK(), attributes, resource.WithFromEnv())
	if err != nil {
		otel.Handle(err)
	}
	return described
}

// flush sends what waits, if it can be sent soon.
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

// traceTroubleEvery is how often trouble with traces is logged: a collector that is away would be every few seconds.
const traceTroubleEvery = time.Minute

// hearTroubleOfTraces has OpenTelemetry say what goes wrong in our own log.
func hearTroubleOfTraces(log *slog.Logger) {
	otel.SetLogger(logr.New(sdkLog{log}))
	otel.SetErrorHandler(&traceTrouble{log: log, now: time.Now})
}

// sdkLog is what OpenTelemetry logs to. It leaves out all that goes with a message: settings are among it, as they were
// given, and those of headers are credentials.
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
	l.log.Error("OpenTelemetry: "+message, "cause", unquoted(err))
}

// WithValues implements logr.LogSink.
func (l sdkLog) WithValues(...any) logr.LogSink { return l }

// WithName implements logr.LogSink.
func (l sdkLog) WithName(string) logr.LogSink { return l }

// unquoted keeps back the errors that quote what was given: a URL, which may hold a password, or part of a header's value.
func unquoted(err error) error {
	var whole *url.Error
	var escape url.EscapeError
	if errors.As(err, &whole) || errors.As(err, &escape) {
		return errors.New("it is malformed")
	}
	return err
}

// traceTrouble logs the first trouble of each minute, and how much was not logged before it.
type traceTrouble struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	told   time.Time
	untold int
}

// Handle implements otel.ErrorHandler.
func (t *traceTrouble) Handle(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.told.IsZero() || now.Sub(t.told) >= traceTroubleEvery {
		t.log.Warn("trouble with traces", "cause", err, "untold", t.untold)
		t.told, t.untold = now, 0
		return
	}
	t.untold++
}
