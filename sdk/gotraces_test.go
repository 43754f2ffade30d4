package sdk

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"remit/client"
)

// traceparents adds the caller's span to each request. otelhttp.NewTransport does the same, and starts a span of its own.
type traceparents struct{ next http.RoundTripper }

func (t traceparents) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	return t.next.RoundTrip(r)
}

// The context of a call reaches the transport of the Go SDK's HTTPClient, which can propagate the trace. The SDK itself does not
// depend on OpenTelemetry, so this example is outside its module.
func Example_goTraces() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Traceparent"))
		fmt.Fprint(w, `{"status":"active"}`)
	}))
	defer server.Close()
	remit, err := client.New(server.URL, client.Options{HTTPClient: &http.Client{Transport: traceparents{http.DefaultTransport}}})
	if err != nil {
		panic(err)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0x4b, 15: 0x36}, SpanID: trace.SpanID{7: 0xb7}, TraceFlags: trace.FlagsSampled})
	_, err = remit.Organization("key").GetSession(trace.ContextWithSpanContext(context.Background(), span), "s1")
	fmt.Println(err)
	// Output:
	// 00-4b000000000000000000000000000036-00000000000000b7-01
	// <nil>
}
