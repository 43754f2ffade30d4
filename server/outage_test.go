package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/google/uuid"
	"remit/internal/redisproc"
	"remit/internal/token"
)

// everyEndpoint returns a request to each endpoint that asks Redis, with the credential that it wants. transaction and
// other are two that are pending.
func everyEndpoint(w tenant, tokens pair, session, transaction, other string) []bodyEndpoint {
	key, access := asKey(w.key), asAgent(tokens.access)
	all := []bodyEndpoint{
		{method: "POST", path: "/v1/organizations", as: anonymous, valid: fields{"name": "n"}},
		{method: "POST", path: "/v1/auth/token", as: anonymous, valid: fields{"agent_id": w.agent.id, "secret": w.agent.secret}},
		{method: "POST", path: "/v1/auth/refresh", as: anonymous, valid: fields{"refresh_token": tokens.refresh}},
		{method: "POST", path: "/v1/auth/revoke", as: asAgent(tokens.access), valid: fields{"refresh_token": tokens.refresh}},
		{method: "GET", path: "/readyz", as: anonymous},
	}
	add := func(endpoints []endpoint, as option) {
		for _, e := range endpoints {
			body, _ := e.body.(fields)
			all = append(all, bodyEndpoint{method: e.method, path: e.path, as: as, valid: body})
		}
	}
	add(slices.DeleteFunc(endpointsOfOrganizations(w, session), func(e endpoint) bool { return strings.Contains(e.path, "/families/") }), key)
	add([]endpoint{{"DELETE", "/v1/agents/" + w.agent.id + "/families/" + tokens.family(), nil}}, key)
	add(endpointsOfBoth(w, session, transaction), key)
	// A batch of an agent has no error as a whole: each of its items has one.
	add(slices.DeleteFunc(endpointsOfBoth(w, session, transaction), func(e endpoint) bool { return e.path == "/v1/actions" }), access)
	add(endpointsOfAgents(w, session, transaction), access)
	add([]endpoint{rollbackOf(other)}, key)
	return all
}

func (c *client) carryOut(e bodyEndpoint) *response {
	c.t.Helper()
	if e.valid == nil {
		return c.ask(e.method, e.path, nil, e.as)
	}
	return c.send(e, e.valid)
}

// unavailable fails the test unless the answer says that nothing was changed, when to come again, and nothing of why.
func (r *response) unavailable() {
	r.t.Helper()
	r.refused(503, "unavailable")
	r.comeAgain()
}

func (r *response) comeAgain() {
	r.t.Helper()
	wantEqual(r.t, r.what+": Retry-After", r.header.Get("Retry-After"), "1")
	for _, inside := range []string{"redis", "dial", "127.0.0.1", "refused", "EOF", "timeout", "LOADING", "OOM"} {
		if strings.Contains(r.detail(), inside) {
			r.t.Errorf("%s: the answer tells %q: %s", r.what, inside, r.body)
		}
	}
}

func TestWithoutARedisEachEndpointIsUnavailablePromptly(t *testing.T) {
	t.Parallel()
	log := &syncBuffer{}
	api := start(t, setup{redis: fmt.Sprintf("redis://127.0.0.1:%d", must(redisproc.FreePort())(t)), log: log})
	organization, id, family := uuid.New(), uuid.New(), uuid.New() // which look right to a service that cannot ask its Redis
	w := tenant{client: api, org: organization.String(), key: newKeyOf(organization), agent: agent{id.String(), token.NewAgentSecret()}}
	access := must(api.on.keyring.SignAccess(token.Access{
		Agent: id, Client: id, Audience: []string{api.on.keyring.Issuer()}, Organization: organization, Family: family, Issued: time.Now(),
	}))(t)
	tokens := pair{access, api.on.keyring.FormatRefresh(token.RefreshToken{Agent: id, Family: family, Generation: 1})}
	for _, e := range everyEndpoint(w, tokens, uuid.NewString(), uuid.NewString(), uuid.NewString()) {
		began := time.Now()
		api.carryOut(e).unavailable()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s %s took %s", e.method, e.path, took)
		}
	}
	api.get("/healthz").is(200)
	api.get("/.well-known/jwks.json").is(200)
	if !strings.Contains(log.String(), "refused") {
		t.Error("the log does not tell the cause")
	}
}

// lost makes a Redis run nothing more: it accepts clients, reads their commands and closes the connection.
func lost(mini *miniredis.Miniredis, broken bool) {
	if !broken {
		mini.Server().SetPreHook(nil)
		return
	}
	mini.Server().SetPreHook(func(peer *miniserver.Peer, command string, _ ...string) bool {
		if command == "HELLO" {
			return false
		}
		peer.Close()
		return true
	})
}

// A write whose reply is lost may have happened. A read, and an index entry without an object, changed nothing: which calls these are,
// redisstore shows.
func TestALostAnswerLeavesTheOutcomeOfAWriteUnknown(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	api := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini})
	w := api.newTenant()
	session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
	key, access := asKey(w.key), asAgent(tokens.access)
	before := w.session(session)
	lost(mini, true)
	api.post("/v1/organizations", fields{"name": "n"}).refused(503, "outcome_unknown").comeAgain()
	api.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).refused(503, "outcome_unknown").comeAgain()
	api.post("/sessions/"+session+"/actions", fields{}, access).refused(503, "outcome_unknown").comeAgain()
	api.post("/sessions", fields{"agent_id": w.agent.id}, key).unavailable()
	api.post("/v1/actions", batchOf(fields{"session_id": session}), access, keyed("k")).unavailable()
	api.post("/v1/transactions/"+transaction+"/commit", nil, access).unavailable()
	api.get("/sessions/"+session, access).unavailable()
	lost(mini, false)
	w.wantUsage(before, nil)
}
