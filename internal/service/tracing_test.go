package service

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"remit/test/serviceproc"
)

// traced runs remit in memory, with traces sent to a collector.
func traced(t *testing.T, collector string, env ...string) *program {
	t.Helper()
	return start(t, append(env, "PATH="+t.TempDir(), "REMIT_OTLP_ENDPOINT="+collector)).ready(t)
}

// stopWell stops it, which flushes the output that the tests read.
func (p *program) stopWell(t *testing.T) {
	t.Helper()
	if err := p.stop(t); err != nil {
		t.Errorf("it ended with %v:\n%s", err, p.Stderr())
	}
}

func TestEachRequestAndEachRoundTripHasASpan(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	p := traced(t, c.url, "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_SERVICE_NAME=budgets")
	id, key := p.createOrganization(t)
	p.get(t, "/v1/organizations/"+id, "X-API-Key", key, "X-Request-Id", "found")
	p.get(t, "/v1/agents/00000000-0000-0000-0000-000000000001?secret=1", "X-API-Key", key, "X-Request-Id", "missing")
	p.get(t, "/nowhere/at/all", "X-API-Key", key, "X-Request-Id", "nowhere")
	p.send(t, "PROPFIND", "/v1/agents", "", "X-API-Key", key, "X-Request-Id", "odd")
	state := "a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("y", 250) + ",c=0123456789"
	p.get(t, "/healthz", "X-Request-Id", "large", "Traceparent", "00-"+parentTrace+"-"+parentSpan+"-01", "Tracestate", state)
	p.stopWell(t) // long before the batch is due

	for requestID, want := range map[string]struct {
		name    string
		members map[string]string
	}{
		"found": {"GET /v1/organizations/{id}", map[string]string{
			"http.request.method": "GET", "http.route": "/v1/organizations/{id}", "http.response.status_code": "200",
			"url.scheme": "http", "network.protocol.version": "1.1", "remit.organization_id": id, "error.type": "",
		}},
		"missing": {"GET /v1/agents/{id}", map[string]string{"http.response.status_code": "404", "error.type": "not_found"}},
		"nowhere": {"GET", map[string]string{"http.route": "", "http.response.status_code": "404", "error.type": "not_found"}},
		"odd":     {"_OTHER", map[string]string{"http.request.method": "_OTHER", "error.type": "method_not_allowed"}},
	} {
		request, _ := c.of(requestID)
		if request.Name != want.name || request.Kind != tracepb.Span_SPAN_KIND_SERVER || len(request.ParentSpanId) != 0 {
			t.Errorf("%s: a span %q of kind %v below %q", requestID, request.Name, request.Kind, request.parentID())
		}
		for name, value := range want.members {
			if request.attributes[name] != value {
				t.Errorf("%s: %s is %q, want %q", requestID, name, request.attributes[name], value)
			}
		}
		if request.StartTimeUnixNano >= request.EndTimeUnixNano {
			t.Errorf("%s: it took no time", requestID)
		}
	}
	if large, _ := c.of("large"); large.parentID() != parentSpan || large.TraceState != "" {
		t.Errorf("with a large state of the trace: below %s with the state %q", large.parentID(), large.TraceState)
	}
	// What the span of a round trip has is in redisstore: TestEachRoundTripOfATracedCallHasASpan.
	if _, trips := c.of("found"); len(trips) == 0 || trips[0].attributes["server.address"] != "127.0.0.1" {
		t.Errorf("the round trips to Redis are %v", trips)
	}
	for name, value := range map[string]string{
		"service.name": "budgets", "service.version": stampedVersion, "deployment.environment.name": "test", "telemetry.sdk.language": "go",
	} {
		if c.resource[name] != value {
			t.Errorf("the resource is %v", c.resource)
		}
	}
	for _, kept := range []string{"secret=1", "00000000-0000-0000-0000-000000000001", "/nowhere", "PROPFIND", key} {
		if strings.Contains(c.everything(), kept) {
			t.Errorf("%q is sent to the collector", kept)
		}
	}
}

const (
	parentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentSpan  = "00f067aa0ba902b7"
)

func TestACallersTraceContinuesAsItsFlagSays(t *testing.T) {
	t.Parallel()
	sampled, unsampled := "00-"+parentTrace+"-"+parentSpan+"-01", "00-"+parentTrace+"-"+parentSpan+"-00"
	type tests map[string]struct {
		parent             string
		continued, visible bool
	}
	for setting, tests := range map[string]tests{
		"OTEL_TRACES_SAMPLER=": {
			"sampled":        {sampled, true, true},
			"unsampled":      {unsampled, true, false},
			"later-version":  {"cc" + sampled[2:] + "-more", true, true},
			"none":           {"", false, true},
			"zeros":          {"00-" + strings.Repeat("0", 32) + "-" + parentSpan + "-01", false, true},
			"capitals":       {strings.ToUpper(sampled), false, true},
			"version-ff":     {"ff" + sampled[2:], false, true},
			"something-else": {"' OR 1=1 -- " + strings.Repeat("x", 4000), false, true},
		},
		"OTEL_TRACES_SAMPLER=parentbased_always_off": {"sampled": {sampled, true, true}, "none": {"", false, false}},
		"OTEL_TRACES_SAMPLER=always_off":             {"sampled": {sampled, true, false}}, // whatever callers say
		"OTEL_PROPAGATORS=none":                      {"sampled": {sampled, false, true}, "unsampled": {unsampled, false, true}},
		"OTEL_PROPAGATORS=baggage,tracecontext":      {"unsampled": {unsampled, true, false}},
		"OTEL_PROPAGATORS=baggage, tracecontext":     {"unsampled": {unsampled, true, false}},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			c := startCollector(t)
			p := traced(t, c.url, setting)
			told := map[string][]string{}
			for name, test := range tests {
				answer, _ := p.send(t, http.MethodGet, "/v1/agents", "", "X-Request-Id", name, "Tracestate", "vendor=1", "Traceparent", test.parent)
				told[name] = strings.Split(answer.Header.Get("Traceresponse"), "-")
			}
			p.stopWell(t)
			for name, test := range tests {
				told := told[name]
				if len(told) != 4 || (told[1] == parentTrace) != test.continued || (told[3] == "01") != test.visible {
					t.Errorf("%s: the answer tells %q", name, told)
					continue
				}
				seen := slices.ContainsFunc(c.taken(), func(s span) bool { return s.spanID() == told[2] })
				if seen != test.visible {
					t.Errorf("%s: its span is sent: %v", name, seen)
				}
				if !seen {
					continue
				}
				request, _ := c.of(name)
				parent, state := "", ""
				if test.continued {
					parent, state = parentSpan, "vendor=1"
				}
				if request.traceID() != told[1] || request.spanID() != told[2] || request.parentID() != parent || request.TraceState != state {
					t.Errorf("%s: the span %s of trace %s is below %q with the state %q, and the answer tells %q",
						name, request.spanID(), request.traceID(), request.parentID(), request.TraceState, told)
				}
			}
		})
	}
}

func TestTheVariablesSayWhetherAndWhereTracesGo(t *testing.T) {
	t.Parallel()
	for settings, sent := range map[string]bool{ // separated by spaces
		"": false,
		"REMIT_OTLP_ENDPOINT=URL OTEL_SDK_DISABLED=true":            false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=URL OTEL_TRACES_EXPORTER=none": false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=URL":                           true,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=URL/v1/traces":          true,
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			c := startCollector(t)
			p := start(t, append(strings.Fields(strings.ReplaceAll(settings, "URL", c.url)), "PATH="+t.TempDir())).ready(t)
			answer, _ := p.send(t, http.MethodGet, "/healthz", "")
			p.stopWell(t)
			if told, spans := answer.Header.Values("Traceresponse"), c.taken(); (len(told) > 0) != sent || (len(spans) > 0) != sent {
				t.Errorf("%d spans are sent, and the answer tells of %q", len(spans), told)
			}
		})
	}
}

func TestAnUnavailableCollectorDelaysNoRequest(t *testing.T) {
	t.Parallel()
	hanging, release := make(chan struct{}, 1000), make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		hanging <- struct{}{}
		<-release
	}))
	t.Cleanup(stuck.Close)
	t.Cleanup(func() { close(release) })
	silent := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = silent.Close() }) // it never accepts
	for name, collector := range map[string]string{
		"away": "http://127.0.0.1:1", "silent": "http://" + silent.Addr().String(), "hanging": stuck.URL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Every four spans are a batch, and no more than eight wait.
			p := traced(t, collector, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=4", "OTEL_BSP_MAX_QUEUE_SIZE=8", "OTEL_BSP_SCHEDULE_DELAY=1")
			for range 500 {
				if status, body := p.get(t, "/healthz"); status != http.StatusOK {
					t.Fatalf("%d %s", status, body)
				}
			}
			if name == "hanging" {
				<-hanging // it has been asked
			}
			p.stopWell(t)
			log := p.Stderr()
			if told := strings.Count(log, "spans were not sent") + strings.Count(log, "exporting traces failed"); told < 1 || told > 3 {
				t.Errorf("the log tells of it %d times:\n%s", told, log)
			}
		})
	}
}

func TestTraceErrorsAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var log serviceproc.Output
	now := time.Unix(0, 0)
	failures := &traceErrors{log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }}
	for minute := range 3 {
		for second := range 60 {
			now = time.Unix(int64(minute*60+second+1), 0)
			failures.Handle(errors.New("collector away"))
		}
	}
	want := []string{"dropped=0", "dropped=59", "dropped=59"}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if !slices.EqualFunc(lines, want, strings.Contains) {
		t.Errorf("it logs\n%s", log.String())
	}
}
