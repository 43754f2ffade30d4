package clients

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remit/client"
	"remit/client/prices"
	"remit/internal/redisproc"
	"remit/money"
	"remit/test/fakeprovider"
	"remit/test/redistest"
	"remit/test/serviceproc"
	"remit/test/suite"
)

func TestMain(m *testing.M) { os.Exit(serviceproc.Tests{M: m}.Run()) }

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

// Models that clients know, so that they send what they send to those.
const (
	openAIModel    = "gpt-5.2"
	anthropicModel = "claude-sonnet-4-6"
)

const priceTable = `{
	"gpt-5.2": {"input_cost_per_token": 1.75e-06, "output_cost_per_token": 1.4e-05, "cache_read_input_token_cost": 1.75e-07,
		"max_input_tokens": 272000, "max_output_tokens": 128000, "supports_reasoning": true},
	"claude-sonnet-4-6": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07,
		"cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06,
		"max_input_tokens": 200000, "max_output_tokens": 64000, "supports_reasoning": true}
}`

// use is what one client does in one scenario: with a session, a key of it, a provider and an upstream of its own.
type use struct {
	caller   caller
	scenario scenario
	upstream string
	provider *fakeprovider.Provider
	calls    atomic.Int64 // of the provider
	session  string
	key      string
	url      string // the base URL for the client
}

func (u *use) name() string {
	how := "whole"
	if u.scenario.streamed {
		how = "streamed"
	}
	return u.caller.name + "/" + u.scenario.name + "/" + how
}

func (u *use) model() string {
	if u.caller.protocol == "anthropic" {
		return anthropicModel
	}
	return openAIModel
}

// ServeHTTP is the provider of this use alone, which behaves as the scenario says: each call by one of its behaviours, the last for all
// that follow.
func (u *use) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := min(int(u.calls.Add(1)), len(u.scenario.behaves))
	r.Header.Set("X-Fake", u.scenario.behaves[n-1])
	u.provider.ServeHTTP(w, r)
}

// world is a service and a gateway as processes, and an organization.
type world struct {
	t     *testing.T
	admin *client.Organization
	table *prices.Table
	url   string // of the gateway
}

// newWorld starts a gateway for these uses, and gives each its session and its key.
func newWorld(t *testing.T, uses []*use) *world {
	t.Helper()
	redis := "REMIT_REDIS_URL=" + redistest.StartRedis(t, redisproc.Config{}).URL()
	service := must(serviceproc.LaunchWith(t.TempDir(), []string{redis, "REMIT_LISTEN=127.0.0.1:0"}))(t)
	t.Cleanup(func() { suite.NoError(t, service.Stop()) })
	api := must(client.New(service.URL, client.Options{}))(t)
	made := must(api.CreateOrganization(t.Context(), client.OrganizationParams{Name: "acme"}))(t)
	w := &world{t: t, admin: api.Organization(string(made.APIKey)), table: must(prices.Parse([]byte(priceTable)))(t)}
	w.url = serviceproc.RunGateway(t, map[string]string{
		serviceproc.GatewayConfig: configOf(t, uses, made.ID), "prices.json": priceTable, "provider.key": "sk-provider",
	}, redis).URL
	agent := must(w.admin.CreateAgent(t.Context(), client.AgentParams{Name: "coder"}))(t)
	for _, u := range uses {
		w.prepare(u, agent.ID)
	}
	return w
}

// configOf returns a config with an upstream for each use, whose provider it starts.
func configOf(t *testing.T, uses []*use, organization string) string {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	config := "listen: 127.0.0.1:0\nprices: prices.json\nupstreams:\n"
	for i, u := range uses {
		u.upstream, u.provider = fmt.Sprintf("use-%d", i), &fakeprovider.Provider{Tools: u.caller.tools}
		mux.Handle("/"+u.upstream+"/", http.StripPrefix("/"+u.upstream, u))
		base := server.URL + "/" + u.upstream
		if u.caller.protocol == "openai" {
			base += "/v1"
		}
		config += fmt.Sprintf("  - {name: %s, protocol: %s, base_url: %q, key_file: provider.key, organizations: [%s]}\n",
			u.upstream, u.caller.protocol, base, organization)
	}
	return config
}

func (w *world) prepare(u *use, agent string) {
	t := w.t
	t.Helper()
	p := client.SessionParams{AgentID: agent, ExpiresIn: time.Hour, MaxValue: new(1000 * money.USD)}
	if u.scenario.value > 0 {
		p.MaxValue = &u.scenario.value
	}
	u.session = must(w.admin.CreateSession(t.Context(), p))(t).ID
	u.key = string(must(w.admin.CreateSessionKey(t.Context(), u.session, client.SessionKeyParams{}))(t).Key)
	if u.scenario.isOver {
		suite.NoError(t, w.admin.EndSession(t.Context(), u.session))
	}
	u.url = w.url + "/" + u.upstream
	if u.caller.protocol == "openai" {
		u.url += "/v1"
	}
}

// ledger returns what a use's provider has counted, in money.
func (w *world) ledger(u *use) (cost money.MicroUSD) {
	w.t.Helper()
	for _, record := range u.provider.Ledger() {
		cost += must(w.table.Cost(record.Model, prices.Usage(record.Usage)))(w.t)
	}
	return cost
}

// reconciles fails unless the use's session comes to have used what its provider has counted, and to hold nothing, and the gateway to have had
// as many requests as it may. Who is refused has reached no provider.
func (w *world) reconciles(t *testing.T, u *use, least, most int) {
	t.Helper()
	for ends := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) { // a call is counted when its answer has ended
		read, ledger, got := must(w.admin.GetSession(t.Context(), u.session))(t), w.ledger(u), w.requests()[u.upstream]
		if read.ValueUsed == ledger && read.ValueHeld == 0 && got >= least && got <= most && (u.scenario.status == 0) == (u.calls.Load() > 0) {
			return
		}
		if time.Now().After(ends) {
			t.Errorf("the session has used %s USD and holds %s, and the provider has counted %s; the gateway has had %d requests, not %d to %d: %+v",
				read.ValueUsed, read.ValueHeld, ledger, got, least, most, u.provider.Ledger())
			return
		}
	}
}

var counted = regexp.MustCompile(`(?m)^remit_gateway_requests_total\{status="(\w+)",upstream="([^"]+)"\} (\d+)$`)

// requests returns how many requests the gateway has had for each upstream.
func (w *world) requests() map[string]int {
	w.t.Helper()
	answer := must(http.Get(w.url + "/metrics"))(w.t)
	defer answer.Body.Close()
	text := must(io.ReadAll(answer.Body))(w.t)
	count := map[string]int{}
	for _, line := range counted.FindAllStringSubmatch(string(text), -1) {
		count[line[2]] += must(strconv.Atoi(line[3]))(w.t)
	}
	return count
}

// words are the words of a text, however a program prints what is between them.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
