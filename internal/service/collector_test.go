package service

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector receives traces as OpenTelemetry's collector does: OTLP in protobuf over HTTP.
type collector struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	raw      []byte // all that was sent
	spans    []span
	resource map[string]string // of who sent last
}

// span is a span as it was sent.
type span struct {
	*tracepb.Span
	attributes map[string]string
}

func (s span) traceID() string  { return hex.EncodeToString(s.TraceId) }
func (s span) spanID() string   { return hex.EncodeToString(s.SpanId) }
func (s span) parentID() string { return hex.EncodeToString(s.ParentSpanId) }

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s %s is no export: %v", r.Method, r.URL.Path, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	for _, from := range request.ResourceSpans {
		c.resource = texts(from.Resource.Attributes)
		for _, scope := range from.ScopeSpans {
			for _, sent := range scope.Spans {
				c.spans = append(c.spans, span{sent, texts(sent.Attributes)})
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	written := map[string]string{}
	for _, a := range attributes {
		if written[a.Key] = a.Value.GetStringValue(); a.Value.GetIntValue() != 0 {
			written[a.Key] = strconv.FormatInt(a.Value.GetIntValue(), 10)
		}
	}
	return written
}

func (c *collector) taken() []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]span(nil), c.spans...)
}

func (c *collector) everything() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.raw)
}

// of returns the span of the request with this id and its descendants.
func (c *collector) of(requestID string) (request span, below []span) {
	c.t.Helper()
	all := c.taken()
	for _, s := range all {
		if s.attributes["remit.request_id"] == requestID {
			request = s
		}
	}
	if request.Span == nil {
		c.t.Fatalf("no span of request %s among %d", requestID, len(all))
	}
	for _, s := range all {
		if s.parentID() == request.spanID() && s.traceID() == request.traceID() {
			below = append(below, s)
		}
	}
	return request, below
}
