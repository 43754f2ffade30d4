package bench

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"remit/internal/redisproc"
	"remit/server"
)

// BenchmarkWatched measures the cost of observing a charge in the process: not at all, in the access log, or in traces for a
// collector in this process that discards them.
func BenchmarkWatched(b *testing.B) {
	discarding := slog.New(slog.NewTextHandler(io.Discard, nil)) //nolint:sloglint // measures the cost of formatting a line; the discarding handler formats none
	for _, by := range []struct {
		name    string
		observe func(*testing.B) observers
	}{
		{"no observer", func(*testing.B) observers { return observers{} }},
		{"log=every-100th", func(*testing.B) observers { return observers{log: server.AccessLog{Log: discarding, Every: 100}} }},
		{"log=all", func(*testing.B) observers { return observers{log: server.AccessLog{Log: discarding, Every: 1}} }},
		{"traces=1%", func(b *testing.B) observers { return traces(b, sdktrace.TraceIDRatioBased(0.01)) }},
		{"traces=all", func(b *testing.B) observers { return traces(b, sdktrace.AlwaysSample()) }},
	} {
		b.Run(by.name, func(b *testing.B) {
			s := startServiceOn(b, redisproc.Config{Dir: b.TempDir()}, by.observe(b))
			direct, _ := inProcess(b, s, charging)
			b.ReportAllocs()
			b.ResetTimer()
			used := must(processorTime(os.Getpid()))(b) // without that of Redis, another process
			for b.Loop() {
				if err := direct.take(); err != nil {
					b.Fatal(err)
				}
			}
			used = must(processorTime(os.Getpid()))(b) - used
			b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
		})
	}
}

func traces(b *testing.B, sampler sdktrace.Sampler) observers {
	b.Helper()
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(collector.Close)
	exporter := must(otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(collector.URL)))(b)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sdktrace.ParentBased(sampler)))
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return observers{tracer: provider.Tracer("remit")}
}
