package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"remit/client"
	"remit/client/prices"
	"remit/money"
	"remit/test/fakeprovider"
)

// MeteringSetup says how many agents call models, and how.
type MeteringSetup struct {
	Agents, Calls int // calls of each agent that are neither refused as unavailable nor made where no gateway runs
	AtOnce        int
	Slow          bool // some calls take so long that their holds are renewed
}

// Metering is a fleet of agents that call models through two gateways. Each of two organizations has upstreams of its own, whose provider
// keeps a ledger of what calls used. The totals are checked apart from those of the other fleets.
type Metering struct {
	s       *Scenario
	setup   MeteringSetup
	table   *prices.Table
	tenants []*tenant
	agents  []*meteredAgent
	ended   map[string]bool // by the agent's number
	calling sync.WaitGroup
	quit    context.CancelFunc // makes no more calls
	done    atomic.Int64       // calls that count
	refused atomic.Int64       // calls that do not
	wire    http.Transport     // to the gateways and the service

	mu       sync.Mutex
	gateways [2]*Gateway // that run
	calls    []modelCall
}

// tenant is an organization with its provider.
type tenant struct {
	*client.Organization
	id       string
	provider fakeprovider.Provider
	server   *httptest.Server
}

// meteredEnds are ways in which an agent or its session ends while calls are in progress. These go on, and cost what they would.
var meteredEnds = []func(ctx context.Context, a *meteredAgent) error{
	func(ctx context.Context, a *meteredAgent) error { return a.of.EndSession(ctx, a.session) },
	func(ctx context.Context, a *meteredAgent) error { return a.of.RevokeAgent(ctx, a.id) },
	func(ctx context.Context, a *meteredAgent) error {
		_, err := a.of.SuspendSession(ctx, a.session, "")
		return err
	},
}

// EndAgents ends every sixth agent or its session.
func (m *Metering) EndAgents() {
	m.s.t.Helper()
	for n := 6; n < len(m.agents); n += 6 {
		m.ended[strconv.Itoa(n)] = true
		must(0, meteredEnds[n/6%len(meteredEnds)](m.s.t.Context(), m.agents[n]))(m.s.t)
	}
}

// meteredAgent is an agent with a session in which it calls models.
type meteredAgent struct {
	number   int
	of       *tenant
	id       string
	session  string
	token    string       // a session key, or an access token
	isKey    bool         // the token is a session key
	attempts atomic.Int64 // made: the number of an attempt is in the model's name
}

// StartMetering starts a provider for each of two organizations, two gateways, and agents that call through them.
func (s *Scenario) StartMetering(setup MeteringSetup) *Metering {
	s.t.Helper()
	m := &Metering{s: s, setup: setup, table: must(prices.Parse([]byte(priceTable())))(s.t), ended: map[string]bool{}}
	m.wire.MaxIdleConnsPerHost, m.wire.DisableCompression = setup.AtOnce, true
	s.t.Cleanup(m.wire.CloseIdleConnections)
	remit := must(client.New(s.Instances[0].URL, client.Options{HTTPClient: &http.Client{Transport: &m.wire}}))(s.t)
	for range 2 {
		made := must(remit.CreateOrganization(s.t.Context(), client.OrganizationParams{Name: "metered"}))(s.t)
		t := &tenant{Organization: remit.Organization(string(made.APIKey)), id: made.ID}
		t.server = httptest.NewServer(&t.provider)
		s.t.Cleanup(t.server.Close)
		m.tenants = append(m.tenants, t)
	}
	for place := range m.gateways {
		m.start(place)
	}
	m.createAgents(remit)
	first := plan{streamed: true, limit: 180}
	m.make(s.t.Context(), m.newCall(m.agents[fitted], first), m.agents[fitted], first, nil)
	m.startCalls()
	return m
}

// mostAttempts is how many calls an agent may try to make. Each has a model of its own, so that its transaction tells which it was.
const mostAttempts = 1000

// priceTable has models of several prices.
func priceTable() string {
	var models []string
	for n := range mostAttempts {
		models = append(models, fmt.Sprintf(`"m-%d": {"input_cost_per_token": %de-07, "output_cost_per_token": 8.1e-06, "max_input_tokens": 100000,
			"max_output_tokens": 200, "cache_read_input_token_cost": 5e-07, "cache_creation_input_token_cost": 2.5e-06}`, n, 15+n%7))
	}
	return "{" + strings.Join(models, ",\n") + "}"
}

// createAgents creates an agent with a session and a credential for each number. Every fourth session is soon used up.
func (m *Metering) createAgents(remit *client.Client) {
	m.s.t.Helper()
	m.agents = make([]*meteredAgent, m.setup.Agents)
	m.each(func(n int) (err error) {
		m.agents[n], err = m.createAgent(m.s.t.Context(), remit, n)
		return err
	})
}

// each calls do for each agent, some at once.
func (m *Metering) each(do func(n int) error) {
	m.s.t.Helper()
	errs := make([]error, m.setup.Agents)
	var doing sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		doing.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(errs); n = int(next.Add(1)) - 1 {
				errs[n] = do(n)
			}
		})
	}
	doing.Wait()
	if err := errors.Join(errs...); err != nil {
		m.s.t.Fatal(err)
	}
}

// fitted is an agent whose first call fits if its output is limited to less than it asks for.
const (
	fitted      = 1
	fittedValue = money.MicroUSD(500)
)

// tightCall is what a session that is soon used up has for each call: a third of what one costs.
const tightCall = money.MicroUSD(300)

func (m *Metering) createAgent(ctx context.Context, remit *client.Client, n int) (*meteredAgent, error) {
	a := &meteredAgent{number: n, of: m.tenants[n%2], isKey: n%3 > 0}
	made, err := a.of.CreateAgent(ctx, client.AgentParams{Name: fmt.Sprintf("agent %d", n)})
	if err != nil {
		return nil, err
	}
	most := 1000 * money.USD
	if n%4 == 1 {
		most = money.MicroUSD(m.setup.Calls) * tightCall
	}
	if n == fitted {
		most = fittedValue
	}
	session, err := a.of.CreateSession(ctx, client.SessionParams{AgentID: made.ID, MaxActions: 1_000_000, MaxValue: &most})
	if err != nil {
		return nil, err
	}
	a.id, a.session = made.ID, session.ID
	if a.isKey {
		key, err := a.of.CreateSessionKey(ctx, session.ID, client.SessionKeyParams{})
		a.token = string(key.Key)
		return a, err
	}
	a.token, err = remit.Agent(made.ID, string(made.Secret)).Token(ctx)
	return a, err
}

// startCalls has the agents make their calls, so many at once, in a random order.
func (m *Metering) startCalls() {
	seed := rand.Uint64()
	m.s.t.Logf("metering: seed %d", seed)
	turns := make(chan int, m.setup.Agents*m.setup.Calls)
	for _, n := range rand.New(rand.NewPCG(seed, 0)).Perm(cap(turns)) {
		turns <- n
	}
	close(turns)
	var ctx context.Context
	ctx, m.quit = context.WithCancel(context.Background())
	for range m.setup.AtOnce {
		m.calling.Go(func() {
			for turn := range turns {
				if ctx.Err() != nil {
					return
				}
				m.callUntilTaken(ctx, m.agents[turn%m.setup.Agents], rand.New(rand.NewPCG(seed, uint64(turn)+1)))
			}
		})
	}
	m.s.t.Cleanup(func() {
		m.quit()
		m.calling.Wait()
	})
}

// AwaitCalls returns when so many more calls were made, or all.
func (m *Metering) AwaitCalls(more int) {
	m.s.t.Helper()
	want := min(m.done.Load()+int64(more), int64(m.setup.Agents*m.setup.Calls))
	waitUntil(m.s.t, workPatience, "agents call models", func() bool { return m.done.Load() >= want })
}

// outageTime bounds how long Redis is away while no call comes. The end of an answer waits for its settlement longer than that.
const outageTime = 2 * time.Second

// KillRedis kills Redis, and starts it again when it was away for so long, and a call was refused for that. It returns when both gateways
// have settled what waited: only then is every answer that a client has read paid.
func (m *Metering) KillRedis(redis *Redis, away time.Duration) {
	m.s.t.Helper()
	refused, since := m.refused.Load(), time.Now()
	redis.Kill()
	for time.Since(since) < away || m.refused.Load() == refused && time.Since(since) < outageTime {
		time.Sleep(5 * time.Millisecond)
	}
	redis.Start()
	for place := range m.gateways {
		g := m.at(place)
		waitUntil(m.s.t, workPatience, g.URL+" settles", func() bool { return m.gauge(g, "remit_gateway_settling") == 0 })
	}
	for n, i := range m.s.Instances { // other scenarios judge how soon: here is too much at once for that
		waitUntil(m.s.t, workPatience, i.URL+" serves again", func() bool { return m.s.acknowledges(i, n) })
	}
}

// Finish waits for the calls, stops the gateways, waits until nothing is held, and checks everything. It returns what it found.
func (m *Metering) Finish() meteredFact {
	t := m.s.t
	t.Helper()
	waitUntil(t, meteringPatience, "all calls are over", func() bool { return m.done.Load() >= int64(m.setup.Agents*m.setup.Calls) })
	m.calling.Wait()
	for place := range m.gateways {
		g := m.at(place)
		for _, name := range []string{"calls_in_progress", "settling", "body_bytes"} {
			waitUntil(t, workPatience, g.URL+" drains, and has no "+name, func() bool { return m.gauge(g, "remit_gateway_"+name) == 0 })
		}
	}
	for _, tenant := range m.tenants {
		tenant.server.Close() // when all of its calls have ended
	}
	m.wire.CloseIdleConnections()
	for place := range m.gateways {
		g := m.at(place)
		waitUntil(t, workPatience, g.URL+" has as many goroutines as before its first call", func() bool {
			return m.gauge(g, goroutines) <= g.atRest+2 // some come and go
		})
		m.stop(g)
	}
	fact := m.readFact(t.Context())
	m.wire.CloseIdleConnections()
	for _, v := range checkMetering(fact) {
		t.Error(v)
	}
	t.Logf("metering: %+v", fact.count())
	return fact
}
