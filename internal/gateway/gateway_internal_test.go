package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"
	"remit/client"
	"remit/client/prices"
	"remit/internal/token"
	"remit/money"
	"remit/redisstore"
	"remit/server"
	"remit/test/fakeprovider"
	"remit/test/serviceproc"
	"remit/test/suite"
)

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var eventually = suite.Eventually

// TestMain fails when a goroutine is left once all has ended.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// The provider's key, and a text in every prompt: neither may be seen anywhere else.
const (
	providerKey = "sk-provider-secret-0123456789"
	prompt      = "the-words-of-the-prompt"
)

const priceTable = `{
	"plain": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "max_input_tokens": 100000, "max_output_tokens": 4096,
		"cache_read_input_token_cost": 5e-07, "cache_creation_input_token_cost": 2.5e-06, "cache_creation_input_token_cost_above_1hr": 4e-06},
	"thinks": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "max_input_tokens": 100000, "max_output_tokens": 4096, "supports_reasoning": true},
	"dear": {"input_cost_per_token": 2e-04, "output_cost_per_token": 8e-04},
	"embeds": {"input_cost_per_token": 2e-08, "output_cost_per_token": 0, "max_input_tokens": 8000}
}`

// world is a gateway before a fake provider, with a Remit of its own.
type world struct {
	t        *testing.T
	url      string
	gateway  *Gateway
	provider *fakeprovider.Provider
	base     string // of the provider
	redis    *miniredis.Miniredis
	api      *client.Client
	admin    *client.Organization
	org      string
	logs     *serviceproc.Output
	folder   string
	stop     func() // the gateway; it may be called again
}

// newWorld starts a gateway with more lines of config, before a provider that answers so; nil: the fake one.
func newWorld(t *testing.T, config string, answer http.Handler) *world {
	t.Helper()
	w := &world{provider: new(fakeprovider.Provider)}
	if answer == nil {
		answer = w.provider
	}
	upstream := httptest.NewServer(answer)
	t.Cleanup(upstream.Close)
	w.base = upstream.URL
	w.start(t, func() string { return w.config(config, `["*"]`) }, func(*Gateway) {})
	return w
}

// start starts the gateway with this config, and changed so.
func (w *world) start(t *testing.T, config func() string, change func(*Gateway)) {
	t.Helper()
	w.t, w.redis, w.logs, w.folder = t, miniredis.NewMiniRedis(), new(serviceproc.Output), t.TempDir()
	w.redis.SetTime(time.Now().UTC().Truncate(time.Millisecond))
	w.redis.ClockTTL(true)
	suite.NoError(t, w.redis.Start())
	t.Cleanup(w.redis.Close)
	store := must(redisstore.Open(redisstore.Config{
		URL: "redis://" + w.redis.Addr(), RefreshLifetime: token.RefreshLifetime, AccessLifetime: token.AccessLifetime, KeepsFeeds: true,
	}))(t)
	t.Cleanup(func() { _ = store.Close() })
	w.write("prices.json", priceTable)
	w.write("key", providerKey+"\n")
	w.write("gateway.yaml", config())
	log := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := server.New(server.Config{Store: store, Log: log, Limits: server.Limits{Off: true}})
	signing := must(token.ParseSigningKey(must(token.GenerateSigningKey(token.Ed25519))(t)))(t)
	refresh := must(token.ParseRefreshKey(token.GenerateRefreshKey()))(t)
	s.SetKeyring(must(token.NewKeyring("https://remit.example", []*token.SigningKey{signing}, []*token.RefreshKey{refresh}))(t))
	w.startAPI(s)
	w.startGateway(s, log, change)
}

// keepPair writes a certificate and its key for the config to name.
func (w *world) keepPair(c tls.Certificate) {
	key := must(x509.MarshalPKCS8PrivateKey(c.PrivateKey))(w.t)
	w.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})))
	w.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}

// config returns a config with two upstreams, openai and anthropic, for these organizations.
func (w *world) config(more, organizations string) string {
	text := "listen: 127.0.0.1:0\nprices: prices.json\n" + more + "\nupstreams:\n"
	for name, base := range map[string]string{"openai": w.base + "/v1", "anthropic": w.base} {
		text += fmt.Sprintf("  - {name: %[1]s, protocol: %[1]s, base_url: %[2]q, key_file: key, organizations: %[3]s}\n", name, base, organizations)
	}
	return text
}

// reconfigure has the gateway read a config for these organizations.
func (w *world) reconfigure(organizations string) {
	w.t.Helper()
	w.write("gateway.yaml", w.config("", organizations))
	w.gateway.source.look()
}

func (w *world) write(name, text string) {
	w.t.Helper()
	suite.NoError(w.t, os.WriteFile(filepath.Join(w.folder, name), []byte(text), 0o600))
}

// startAPI serves the API, to make what the tests need.
func (w *world) startAPI(s *server.Server) {
	t := w.t
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = s.Serve(listener) }()
	connections := &http.Transport{}
	t.Cleanup(func() {
		connections.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	w.api = must(client.New("http://"+listener.Addr().String(), client.Options{HTTPClient: &http.Client{Transport: connections}}))(t)
	made := must(w.api.CreateOrganization(t.Context(), client.OrganizationParams{Name: "acme"}))(t)
	w.admin, w.org = w.api.Organization(string(made.APIKey)), made.ID
}

// startGateway serves a gateway that asks the server.
func (w *world) startGateway(s *server.Server, log *slog.Logger, change func(*Gateway)) {
	t := w.t
	t.Helper()
	w.gateway = must(Open(filepath.Join(w.folder, "gateway.yaml"), Options{Log: log, AccessLog: server.AccessLog{Log: log, Every: 1}}))(t)
	w.gateway.linger = time.Millisecond
	change(w.gateway)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	w.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	gateway := w.gateway
	gateway.Join(s)
	go func() { served <- gateway.Serve(ctx, listener) }()
	w.stop = sync.OnceFunc(func() {
		gateway.Stop()
		cancel()
		suite.NoError(t, <-served)
	})
	t.Cleanup(w.stop)
}

type agent struct {
	*world
	id      string
	session string
	token   string
}

func (w *world) newAgent(p client.SessionParams) agent {
	w.t.Helper()
	made := must(w.admin.CreateAgent(w.t.Context(), client.AgentParams{Name: "coder"}))(w.t)
	p.AgentID = made.ID
	session := must(w.admin.CreateSession(w.t.Context(), p))(w.t)
	access := must(w.api.Agent(made.ID, string(made.Secret)).Token(w.t.Context()))(w.t)
	return agent{w, made.ID, session.ID, access}
}

// rich returns an agent whose session has a dollar, which is more than all calls of a test cost.
func (w *world) rich() agent {
	w.t.Helper()
	return w.newAgent(client.SessionParams{MaxValue: new(money.USD)})
}

func (a agent) key() string {
	a.t.Helper()
	return string(must(a.admin.CreateSessionKey(a.t.Context(), a.session, client.SessionKeyParams{}))(a.t).Key)
}

// tokenOf returns a token of another agent, with these options.
func (w *world) tokenOf(o client.AgentOptions) string {
	w.t.Helper()
	made := must(w.admin.CreateAgent(w.t.Context(), client.AgentParams{Name: "coder"}))(w.t)
	o.Secret = string(made.Secret)
	return must(must(w.api.AgentWith(made.ID, o))(w.t).Token(w.t.Context()))(w.t)
}

// answer is what a client got.
type answer struct {
	*http.Response
	body string
	err  error // of reading it
}

// post calls the gateway as the agent. Headers are name, value, ….
func (a agent) post(path, body string, headers ...string) answer {
	a.t.Helper()
	return a.do(a.request("POST", path, body, headers...))
}

func (a agent) request(method, path, body string, headers ...string) *http.Request {
	a.t.Helper()
	var text io.Reader = http.NoBody
	if body != "" {
		text = strings.NewReader(body)
	}
	r := must(http.NewRequestWithContext(a.t.Context(), method, a.url+path, text))(a.t)
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("X-Remit-Session", a.session)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	return r
}

// open sends a request over a connection of its own, and returns when the head of the answer has come. The rest ends with the test.
func (w *world) open(r *http.Request) (*http.Response, error) {
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	got, err := transport.RoundTrip(r)
	if err == nil {
		w.t.Cleanup(func() { got.Body.Close() })
	}
	return got, err
}

func (a agent) stream(headers ...string) *http.Response {
	a.t.Helper()
	return must(a.open(a.request("POST", chatPath, bodyFor(chatPath, `,"stream":true`), headers...)))(a.t)
}

func (w *world) do(r *http.Request) answer {
	w.t.Helper()
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	got := must(transport.RoundTrip(r))(w.t)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got, string(body), err}
}

func (a agent) usage() (used, held money.MicroUSD) {
	a.t.Helper()
	read := must(a.admin.GetSession(a.t.Context(), a.session))(a.t)
	return read.ValueUsed, read.ValueHeld
}

// spent fails unless this is what the session has used, and nothing is held.
func (a agent) spent(want money.MicroUSD) {
	a.t.Helper()
	if used, held := a.usage(); used != want || held != 0 {
		a.t.Errorf("used %s USD and holds %s, want %s and 0", used, held, want)
	}
}

// lastHold returns what was held for the agent's last call, by its audit trail.
func (a agent) lastHold() (held money.MicroUSD) {
	a.t.Helper()
	for event, err := range a.admin.ListEvents(a.t.Context(), a.id, "") {
		suite.NoError(a.t, err)
		if event.Type == client.EventTransactionBegun {
			var begun struct {
				Held money.MicroUSD `json:"value_held_usd"`
			}
			suite.NoError(a.t, json.Unmarshal(event.Data, &begun))
			held = begun.Held
		}
	}
	return held
}

// paidTheHold fails unless the session comes to have used what was held for its only call, no more and no less, and to hold nothing.
func (a agent) paidTheHold(what string) {
	a.t.Helper()
	want := a.lastHold()
	eventually(a.t, what+": what was held is spent", func() bool { used, held := a.usage(); return want > 0 && used == want && held == 0 })
}

// reconciles fails unless the session comes to have used what the provider's ledger has counted since, and to hold nothing.
func (a agent) reconciles(before money.MicroUSD) {
	a.t.Helper()
	var used, held, counted money.MicroUSD
	for ends := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) { // the provider counts when an answer has ended
		used, held = a.usage()
		counted = a.ledger("plain") - before
		if used > 0 && held == 0 && used == counted {
			return
		}
		if time.Now().After(ends) {
			a.t.Fatalf("used %s USD and holds %s; the ledger has %s", used, held, counted)
		}
	}
}

func (w *world) ledger(model string) (cost money.MicroUSD) {
	w.t.Helper()
	table := must(prices.Parse([]byte(priceTable)))(w.t)
	for _, record := range w.provider.Ledger() {
		cost += must(table.Cost(model, prices.Usage(record.Usage)))(w.t)
	}
	return cost
}

// The three formats, with a path at the gateway and a body that has the prompt.
var (
	chatPath, responsesPath, messagesPath = "/openai/chat/completions", "/openai/responses", "/anthropic/v1/messages"

	formats = map[string]string{
		chatPath:      `{"model":"plain","max_tokens":40,"messages":[{"role":"user","content":"` + prompt + `"}]%s}`,
		responsesPath: `{"model":"plain","max_output_tokens":40,"input":"` + prompt + `"%s}`,
		messagesPath:  `{"model":"plain","max_tokens":40,"messages":[{"role":"user","content":"` + prompt + `"}]%s}`,
	}
)

func bodyFor(path, more string) string { return fmt.Sprintf(formats[path], more) }

// code returns the code of a refusal in the provider's shape.
func (a answer) code(t *testing.T) string {
	t.Helper()
	var read struct {
		Type  string
		Error struct{ Code, Type, Message string }
	}
	if err := json.Unmarshal([]byte(a.body), &read); err != nil || read.Error.Message == "" {
		t.Fatalf("%d is no error of a provider: %s", a.StatusCode, a.body)
	}
	return read.Error.Code
}
