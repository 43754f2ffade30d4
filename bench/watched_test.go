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
	"remit/redisproc"
	"remit/server"
)

// BenchmarkWatched is what it costs a charge, in the process, to be seen: by nobody, in the access log, or in traces that go
// to a collector in this process, which takes all and keeps nothing.
func BenchmarkWatched(b *testing.B) {
	toNowhere := slog.New(slog.NewTextHandler(io.Discard, nil)) //nolint:sloglint // what a line costs to make is what is measured; the other handler makes none
	for _, by := range []struct {
		name    string
		watches func(*testing.B) watching
	}{
		{"nobody", func(*testing.B) watching { return watching{} }},
		{"log=every-100th", func(*testing.B) watching { return watching{log: server.AccessLog{Log: toNowhere, Every: 100}} }},
		{"log=all", func(*testing.B) watching { return watching{log: server.AccessLog{Log: toNowhere, Every: 1}} }},
		{"traces=1%", func(b *testing.B) watching { return traces(b, sdktrace.TraceIDRatioBased(0.01)) }},
		{"traces=all", func(b *testing.B) watching { return traces(b, sdktrace.AlwaysSample()) }},
	} {
		b.Run(by.name, func(b *testing.B) {
			s := startWatched(b, redisproc.Config{Dir: b.TempDir(), Fsync: "everysec"}, by.watches(b))
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
	b.Fatalf("there is no path %s", name)
	return path{}
}

func traces(b *testing.B, sampler sdktrace.Sampler) watching {
	b.Helper()
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(collector.Close)
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(collector.URL))
	if err != nil {
		b.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sdktrace.ParentBased(sampler)))
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return watching{tracer: provider.Tracer("remit")}
}

// cpuTime is what this process has used of the processors, which tells more than the clock when others use them too. Redis is
// another process.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
