package bench

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
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
			s := startObserved(b, redisproc.Config{Dir: b.TempDir(), Fsync: "everysec"}, by.observe(b))
			p := pathNamed(b, "charge")
			direct, _ := inProcess(b, s, p)
			b.ReportAllocs()
			b.ResetTimer()
			used := cpuTime(b)
			for b.Loop() {
				if err := direct.take(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-used)/float64(b.N), "cpu-ns/op")
		})
	}
}

func pathNamed(b *testing.B, name string) path {
	b.Helper()
	for _, p := range paths {
		if p.name == name {
			return p
		}
	}
	b.Fatalf("no path %s", name)
	return path{}
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

// cpuTime returns the processor time of this process, which other load on the machine affects less than elapsed time. It
// excludes Redis, another process.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
