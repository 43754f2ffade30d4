package server_test

import (
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// tenant is an organization with one agent, as the tests use it: most start from one.
type tenant struct {
	*client
	org, key string // id and API key
	agent
	objects map[string]string // see oneOfEach; nil where a test needs none
}

// agent is an agent and what it authenticates with.
type agent struct{ id, secret string }

// pair is what a token exchange or refresh returns.
type pair struct{ access, refresh string }

// family returns the family that the access token names, "" of none.
func (p pair) family() string {
	claims := jwt.MapClaims{}
	_, _, _ = jwt.NewParser().ParseUnverified(p.access, claims)
	family, _ := claims["fam"].(string)
	return family
}

var agentScopes = []string{"read", "write"}

func (c *client) newTenant() tenant {
	c.t.Helper()
	org := c.post("/v1/organizations", fields{"name": "acme"}).is(201)
	w := tenant{client: c, org: org.text("id"), key: org.text("api_key")}
	w.agent = w.newAgent()
	return w
}

// onEach is onEachRedis, in parallel with other tests, with what is set up there: by (*client).newTenant, most of the time.
func onEach[T any](t *testing.T, setUp func(*client) T, test func(t *testing.T, of T)) {
	t.Helper()
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) { test(t, setUp(api)) })
}

// through returns the tenant as another instance serves it.
func (w tenant) through(c *client) tenant {
	w.client = c
	return w
}

func (w tenant) newAgent() agent {
	w.t.Helper()
	return w.newAgentWith(agentScopes...)
}

func (w tenant) newAgentWith(scopes ...string) agent {
	w.t.Helper()
	created := w.post("/v1/agents", fields{"name": "scout", "scopes": scopes}, asKey(w.key)).is(201)
	return agent{created.text("id"), created.text("secret")}
}

// exchange gives the tenant's agent a token pair of a new family.
func (w tenant) exchange() pair {
	w.t.Helper()
	return w.exchangeFor(w.agent)
}

func (w tenant) exchangeFor(a agent) pair {
	w.t.Helper()
	return pairIn(w.post("/v1/auth/token", fields{"agent_id": a.id, "secret": a.secret}).is(200))
}

func pairIn(r *response) pair {
	r.t.Helper()
	return pair{r.text("access_token"), r.text("refresh_token")}
}

// newSession creates a session of the tenant's agent with these settings, and returns its id.
func (w tenant) newSession(settings fields) string {
	w.t.Helper()
	return w.newSessionOf(w.agent, settings)
}

func (w tenant) newSessionOf(a agent, settings fields) string {
	w.t.Helper()
	return w.post("/sessions", settings.with(fields{"agent_id": a.id}), asKey(w.key)).is(201).text("id")
}

// session reads a session as its organization sees it.
func (w tenant) session(id string) fields {
	w.t.Helper()
	return w.get("/sessions/"+id, asKey(w.key)).is(200).object()
}

// begin begins a transaction of the tenant's agent with these settings, and returns its id.
func (w tenant) begin(settings fields) string {
	w.t.Helper()
	return w.beginAs(asAgent(w.exchange().access), settings).is(201).text("id")
}

func (w tenant) beginAs(as option, settings fields) *response {
	w.t.Helper()
	return w.post("/v1/transactions", fields{"action_type": "call", "pre_state": fields{}}.with(settings), as)
}

// transaction reads a transaction as its organization sees it.
func (w tenant) transaction(id string) fields {
	w.t.Helper()
	return w.get("/v1/transactions/"+id, asKey(w.key)).is(200).object()
}

// revoke revokes the tenant's agent.
func (w tenant) revoke() {
	w.t.Helper()
	w.post("/v1/agents/"+w.agent.id+"/revoke", nil, asKey(w.key)).is(200)
}
