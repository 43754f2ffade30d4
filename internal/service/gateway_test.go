package service

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"remit/money"
)

const (
	providerKey = "sk-provider-secret-0123456789"
	modelPrices = `{"plain": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "max_input_tokens": 100000, "max_output_tokens": 4096}}`
	modelCall   = `{"model": "plain", "max_tokens": 40, "stream": true, "messages": [{"role": "user", "content": "hello"}]}`
	modelCost   = money.MicroUSD(60) // of the usage in lastEvents
	firstEvent  = `data: {"id":"c","object":"chat.completion.chunk","model":"plain","choices":[{"index":0,"delta":{"content":"hi"}}]}` + "\n\n"
	lastEvents  = `data: {"id":"c","object":"chat.completion.chunk","model":"plain","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"c","object":"chat.completion.chunk","model":"plain","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}` + "\n\n" +
		"data: [DONE]\n\n"
)

// metered is a service with a session, and a provider for the gateways beside it.
type metered struct {
	t          *testing.T
	service    *program
	redis      string
	folder     string // of the gateways' config
	apiKey     string
	session    string // its path
	sessionKey string
	base       string // URL of the provider
	goOn       chan struct{}
}

func newMetered(t *testing.T) *metered {
	t.Helper()
	m := &metered{t: t, redis: startRedis(t), folder: t.TempDir(), goOn: make(chan struct{})}
	provider := httptest.NewServer(m)
	t.Cleanup(provider.Close)
	m.base = provider.URL
	m.write("prices.json", modelPrices)
	m.write("provider.key", providerKey)
	m.write("gateway.yaml", m.config("openai", ""))
	return m
}

// serve starts the service and makes a session with a key.
func (m *metered) serve() {
	t := m.t
	t.Helper()
	m.service = start(t, []string{"REMIT_REDIS_URL=" + m.redis}).ready(t)
	_, m.apiKey = m.service.createOrganization(t)
	var made struct{ ID, Key string }
	m.service.post(t, "/sessions", m.apiKey, fmt.Sprintf(`{"agent_id":%q}`, m.service.createAgent(t, m.apiKey).id), &made)
	m.session = "/sessions/" + made.ID
	m.service.post(t, m.session+"/keys", m.apiKey, "{}", &made)
	m.sessionKey = made.Key
}

// ServeHTTP is the provider. With X-Wait the rest of the answer comes only when it may go on.
func (m *metered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if body, _ := io.ReadAll(r.Body); r.Header.Get("Authorization") != "Bearer "+providerKey || !strings.Contains(string(body), "hello") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, firstEvent)
	_ = http.NewResponseController(w).Flush()
	if r.Header.Get("X-Wait") != "" {
		select {
		case <-m.goOn:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = io.WriteString(w, lastEvents)
}

// config returns a config with an upstream of this name, and more lines.
func (m *metered) config(name, more string) string {
	return "listen: 127.0.0.1:0\nprices: prices.json\n" + more +
		fmt.Sprintf("upstreams:\n  - {name: %s, protocol: openai, base_url: %s/v1, key_file: provider.key, organizations: [\"*\"]}\n", name, m.base)
}

func (m *metered) write(name, text string) {
	m.t.Helper()
	must(0, os.WriteFile(filepath.Join(m.folder, name), []byte(text), 0o600))(m.t)
}

// start starts a gateway, which may not be ready yet.
func (m *metered) start(env []string, args ...string) *program {
	m.t.Helper()
	env = append(env, "REMIT_REDIS_URL="+m.redis)
	return start(m.t, env, append([]string{"gateway", "--config", filepath.Join(m.folder, "gateway.yaml")}, args...)...)
}

// begin sends a call to a gateway, and returns when the answer's head and, of a success, its first event have come.
func (m *metered) begin(p *program, headers ...string) *http.Response {
	m.t.Helper()
	request := must(http.NewRequestWithContext(m.t.Context(), http.MethodPost, p.url+"/openai/v1/chat/completions", strings.NewReader(modelCall)))(m.t)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+m.sessionKey)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response := must(http.DefaultTransport.RoundTrip(request))(m.t)
	m.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode == http.StatusOK {
		must(io.ReadFull(response.Body, make([]byte, len(firstEvent))))(m.t)
	}
	return response
}

// usage returns what the session has used and holds, by the service.
func (m *metered) usage() (used, held money.MicroUSD) {
	m.t.Helper()
	_, text := m.service.get(m.t, m.session, "X-API-Key", m.apiKey)
	var read struct {
		Used money.MicroUSD `json:"value_used_usd"`
		Held money.MicroUSD `json:"value_held_usd"`
	}
	must(0, json.Unmarshal([]byte(text), &read))(m.t)
	return read.Used, read.Held
}

// spent fails unless the session has used so much, and holds nothing.
func (m *metered) spent(want money.MicroUSD) {
	m.t.Helper()
	if used, held := m.usage(); used != want || held != 0 {
		m.t.Errorf("used %s USD and holds %s, want %s and 0", used, held, want)
	}
}

func TestAGatewayDoesNotStartWithoutRedisOrWithABadConfig(t *testing.T) {
	t.Parallel()
	const nowhere, good = "REMIT_REDIS_URL=redis://127.0.0.1:1", "listen: 127.0.0.1:0\nprices: prices.json\nupstreams:\n" +
		"  - {name: openai, protocol: openai, base_url: http://127.0.0.1:1, key_file: provider.key, organizations: [\"*\"]}\n"
	for reason, test := range map[string]struct {
		old, changed string
		settings     []string
		status       int
	}{
		"set --redis-url": {"", "", nil, exitUsage},
		"no-such-file":    {"", "", []string{nowhere, "REMIT_CONFIG=no-such-file"}, 1},

		"gateway.yaml:1: fallback is no field that is known here": {"listen:", "fallback:", []string{nowhere}, 1},
		"gateway.yaml:1: tls: certificate ":                       {"listen: 127.0.0.1:0", "tls: {cert_file: provider.key, key_file: provider.key}", []string{nowhere}, 1},
		"cannot listen on 127.0.0.1:99999: ":                      {"127.0.0.1:0", "127.0.0.1:99999", []string{nowhere}, 1},
		"cannot listen on 127.0.0.1:99999 for metrics":            {"", "", []string{nowhere, "REMIT_METRICS_LISTEN=127.0.0.1:99999"}, 1},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			m := &metered{t: t, folder: t.TempDir()}
			m.write("prices.json", modelPrices)
			m.write("provider.key", providerKey)
			m.write("gateway.yaml", strings.Replace(good, test.old, test.changed, 1))
			p := start(t, append([]string{"REMIT_CONFIG=" + filepath.Join(m.folder, "gateway.yaml")}, test.settings...), "gateway")
			_ = p.Wait()
			if log := p.Output(); p.State().ExitCode() != test.status || !strings.Contains(log, reason) || strings.Contains(log, providerKey) ||
				strings.Contains(log, "metering") {
				t.Errorf("it exits with %d, want %d, and says\n%s", p.State().ExitCode(), test.status, log)
			}
		})
	}
}

func TestAGatewayIsReadyOnceTheServiceHasMadeItsKeys(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	listen := "127.0.0.1:" + freePort(t)
	m.write("gateway.yaml", strings.Replace(m.config("openai", ""), "127.0.0.1:0", listen, 1))
	p := m.start(nil)
	p.becomesReadable(t, listen, http.StatusServiceUnavailable)
	if response := m.begin(p, "Authorization", "Bearer rmsk_x"); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("a call before that: %s", response.Status)
	}
	status, _ := p.get(t, "/healthz")
	is(t, "/healthz before that", status, http.StatusOK)
	m.serve()
	p.ready(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		status, _ := p.get(t, path)
		is(t, path, status, http.StatusOK)
	}
	response := m.begin(p)
	if rest := must(io.ReadAll(response.Body))(t); response.StatusCode != http.StatusOK || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("a call: %s %s\n%s", response.Status, rest, p.Stderr())
	}
	m.spent(modelCost)
	if status, metrics := p.get(t, "/metrics"); status != http.StatusOK || !strings.Contains(metrics, `remit_gateway_settlements_total{how="usage"} 1`) {
		t.Errorf("/metrics: %d %s", status, metrics)
	}
	if checked := start(t, []string{"REMIT_LISTEN=" + listen}, "healthcheck"); checked.Wait() != nil {
		t.Errorf("healthcheck: %s", checked.Stderr())
	}
}

func TestACallHasALineInTheLogAndASpanWithThoseOfTheAPIAndOfItsSettlementBelow(t *testing.T) {
	t.Parallel()
	m, traces := newMetered(t), startCollector(t)
	m.serve()
	p := m.start([]string{"REMIT_OTLP_ENDPOINT=" + traces.url}, "--access-log=all", "--metrics-listen=127.0.0.1:0").ready(t)
	response := m.begin(p, "Traceparent", "00-"+parentTrace+"-"+parentSpan+"-01", "Tracestate", "vendor=1")
	must(io.ReadAll(response.Body))(t)
	if status, _ := p.get(t, "/metrics"); status == http.StatusOK {
		t.Errorf("with --metrics-listen, /metrics beside the calls is %d", status)
	}
	p.stopWell(t)
	for _, line := range []string{
		"msg=metrics url=http://127.0.0.1:", `msg="gateway request"`, "upstream=openai", "route=chat/completions", "settled_by=usage", "trace_id=" + parentTrace,
	} {
		if !strings.Contains(p.Stderr(), line) {
			t.Errorf("the log does not say %s:\n%s", line, p.Stderr())
		}
	}
	request, below := traces.of(response.Header.Get("X-Remit-Request-Id"))
	if told := response.Header.Get("Traceresponse"); told != "00-"+parentTrace+"-"+request.spanID()+"-01" {
		t.Errorf("the answer tells %q", told)
	}
	if request.Name != "POST chat/completions" || request.Kind != tracepb.Span_SPAN_KIND_SERVER || request.traceID() != parentTrace ||
		request.parentID() != parentSpan || request.TraceState != "vendor=1" {
		t.Errorf("a span %q of kind %v below %q, with the state %q", request.Name, request.Kind, request.parentID(), request.TraceState)
	}
	for name, value := range map[string]string{
		"http.request.method": "POST", "http.route": "chat/completions", "http.response.status_code": "200", "url.scheme": "http",
		"network.protocol.version": "1.1", "gen_ai.request.model": "plain", "remit.upstream": "openai", "remit.settled_by": "usage",
	} {
		if request.attributes[name] != value {
			t.Errorf("%s is %q, want %q", name, request.attributes[name], value)
		}
	}
	var names []string
	for _, s := range below {
		names = append(names, s.Name)
	}
	for _, want := range []string{"POST /v1/transactions", "EVALSHA commit_transaction"} {
		if all := strings.Join(names, ", "); !strings.Contains(all, want) {
			t.Errorf("below it are %s, and no %s", all, want)
		}
	}
}

func TestAGatewayFollowsItsFiles(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.serve()
	p := m.start(nil).ready(t)
	m.write("gateway.yaml", m.config("other", ""))
	becomes(t, "the new config is used", func() bool {
		response, _ := p.send(t, http.MethodPost, "/other/chat/completions", modelCall, "Api-Key", m.sessionKey)
		return response.StatusCode == http.StatusOK
	})
	m.spent(modelCost)
}

func TestAStopLetsAStreamEnd(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.serve()
	m.write("gateway.yaml", m.config("openai", "stop_seconds: 60\n"))
	p := m.start(nil).ready(t)
	stream := m.begin(p, "X-Wait", "1")
	must(0, p.Signal(syscall.SIGTERM))(t)
	p.becomesReadable(t, strings.TrimPrefix(p.url, "http://"), http.StatusServiceUnavailable)
	response := m.begin(p)
	is(t, "a new call", response.StatusCode, http.StatusServiceUnavailable)
	if response.Header.Get("Retry-After") == "" || response.Header.Get("X-Should-Retry") != "true" || !response.Close {
		t.Errorf("its client is told %v, close %t", response.Header, response.Close)
	}
	close(m.goOn)
	if rest, err := io.ReadAll(stream.Body); err != nil || !strings.HasSuffix(string(rest), "[DONE]\n\n") {
		t.Errorf("the stream goes on with %q (%v)", rest, err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("it ends with %v:\n%s", err, p.Stderr())
	}
	m.spent(modelCost)
}

// The process ends only once the call that it cuts is paid, and a cut is no failure.
func TestAStopWhoseTimeIsOverCutsAStreamAndPays(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.serve()
	m.write("gateway.yaml", m.config("openai", "stop_seconds: 1\n"))
	p := m.start(nil).ready(t)
	stream := m.begin(p, "X-Wait", "1")
	_, held := m.usage()
	if held <= modelCost {
		t.Fatalf("%s USD are held for a call", held)
	}
	p.stopWell(t)
	if rest, err := io.ReadAll(stream.Body); err == nil {
		t.Errorf("the stream goes on with %q", rest)
	}
	m.spent(held)
}

func TestAStopOfAGatewayWithoutKeysDoesNotWait(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	p := m.start(nil)
	becomes(t, "it waits for the service", func() bool {
		return strings.Contains(p.Stderr(), "no instance of the service has stored an issuer yet")
	})
	p.stopWell(t)
	if strings.Contains(p.Stderr(), "stopping") {
		t.Errorf("it waited for calls:\n%s", p.Stderr())
	}
}
