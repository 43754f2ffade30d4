package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
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
	add(slices.DeleteFunc(endpointsOfOrganizations(w, session), isFamily), key)
	add([]endpoint{{"DELETE", "/v1/agents/" + w.agent.id + "/families/" + tokens.family(), nil}}, key)
	add(endpointsOfBoth(w, session, transaction), key)
	// A batch of an agent has no error as a whole: each of its items has one.
	add(slices.DeleteFunc(endpointsOfBoth(w, session, transaction), isBatch), access)
	add(endpointsOfAgents(w, session, transaction), access)
	add([]endpoint{rollbackOf(other)}, key)
	return all
}

func isFamily(e endpoint) bool { return strings.Contains(e.path, "/families/") }

func isBatch(e endpoint) bool { return e.path == "/v1/actions" }

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
	if got := r.header.Get("Retry-After"); got != "1" {
		r.t.Errorf("%s: Retry-After %q, want 1", r.what, got)
	}
	for _, inside := range []string{"redis", "dial", "127.0.0.1", "refused", "EOF", "timeout", "LOADING", "OOM"} {
		if strings.Contains(r.detail(), inside) {
			r.t.Errorf("%s: the answer tells %q: %s", r.what, inside, r.body)
		}
	}
}

// made returns a tenant and tokens that look right, of a service whose Redis cannot be asked.
func made(t *testing.T, api *client) (tenant, pair) {
	t.Helper()
	organization, id, family := uuid.New(), uuid.New(), uuid.New()
	w := tenant{client: api, org: organization.String(), key: newKeyOf(organization), agent: agent{id.String(), token.NewAgentSecret()}}
	access := must(api.on.keyring.SignAccess(token.Access{
		Agent: id, Client: id, Audience: []string{api.on.keyring.Issuer()}, Organization: organization, Family: family, Issued: time.Now(),
	}))(t)
	return w, pair{access, api.on.keyring.FormatRefresh(token.RefreshToken{Agent: id, Family: family, Generation: 1})}
}

func TestWithoutARedisEachEndpointIsUnavailablePromptly(t *testing.T) {
	t.Parallel()
	log := &syncBuffer{}
	api := start(t, setup{redis: fmt.Sprintf("redis://127.0.0.1:%d", must(redisproc.FreePort())(t)), log: log})
	w, tokens := made(t, api)
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

func TestARedisThatStopsAndComesBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a real Redis")
	}
	port := must(redisproc.FreePort())(t)
	config := redisproc.Config{Dir: t.TempDir(), Args: []string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1"}}
	redis := must(redisproc.Start(t.Context(), config))(t)
	t.Cleanup(func() { _ = redis.Stop() })
	api := start(t, setup{redis: fmt.Sprintf("redis://127.0.0.1:%d", port)})
	w := api.newTenant()
	session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
	w.post("/sessions/"+session+"/actions", fields{"value_usd": num("0.1")}, asAgent(tokens.access)).is(200)
	before := w.session(session)

	must(0, redis.Stop())(t)
	for _, e := range everyEndpoint(w, tokens, session, transaction, transaction) {
		api.carryOut(e).unavailable()
	}

	redis = must(redisproc.Start(context.Background(), config))(t)
	eventually(t, "the service has found its Redis again", func() bool { return w.get("/readyz").status == 200 })
	if found := differences(w.session(session), before); found != "" {
		t.Errorf("what was unavailable has changed the session: %s", found)
	}
	for _, e := range everyEndpoint(w, tokens, session, transaction, transaction)[1:3] {
		api.carryOut(e).is(200)
	}
	w.post("/sessions/"+session+"/actions", fields{}, asKey(w.key)).is(200)
	if agents := len(w.get("/v1/agents", asKey(w.key)).is(200).ids()); agents != 1 {
		t.Errorf("%d agents, want 1", agents)
	}
}

func TestARedisThatRefusesIsUnavailable(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	api := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini})
	w := api.newTenant()
	session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
	for _, state := range []string{
		"LOADING Redis is loading the dataset in memory", "OOM command not allowed when used memory > 'maxmemory'.",
		"READONLY You can't write against a read only replica.", "MISCONF Redis is configured to save RDB snapshots",
		"NOAUTH Authentication required.", "MASTERDOWN Link with MASTER is down",
	} {
		mini.SetError(state)
		for _, e := range everyEndpoint(w, tokens, session, transaction, transaction) {
			api.carryOut(e).unavailable()
		}
		mini.SetError("")
	}
	w.post("/sessions/"+session+"/actions", fields{}, asAgent(tokens.access)).is(200)
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

// A write whose reply is lost may have happened. A read, and an index entry without an object, changed nothing.
func TestALostAnswerLeavesTheOutcomeOfAWriteUnknown(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	api := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini})
	w := api.newTenant()
	session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
	key, access := asKey(w.key), asAgent(tokens.access)
	before := w.session(session)
	lost(mini, true)
	for _, write := range []bodyEndpoint{
		{method: "POST", path: "/v1/organizations", as: anonymous, valid: fields{"name": "n"}},
		{method: "POST", path: "/v1/organizations/" + w.org + "/api-key/rotate", as: key},
		{method: "POST", path: "/v1/auth/token", as: anonymous, valid: fields{"agent_id": w.agent.id, "secret": w.agent.secret}},
		{method: "POST", path: "/v1/auth/refresh", as: anonymous, valid: fields{"refresh_token": tokens.refresh}},
		{method: "POST", path: "/v1/auth/revoke", as: access, valid: fields{"refresh_token": tokens.refresh}},
		{method: "POST", path: "/sessions/" + session + "/actions", as: access, valid: fields{"count": 1}},
		{method: "POST", path: "/sessions/" + session + "/end", as: access},
	} {
		api.carryOut(write).refused(503, "outcome_unknown").comeAgain()
	}
	for _, harmless := range []bodyEndpoint{
		{method: "GET", path: "/v1/organizations/" + w.org, as: key},
		{method: "GET", path: "/v1/agents", as: key},
		{method: "GET", path: "/v1/agents/" + w.agent.id, as: key},
		{method: "GET", path: "/sessions", as: access},
		{method: "GET", path: "/sessions/" + session, as: access},
		{method: "GET", path: "/readyz", as: anonymous},
		{method: "POST", path: "/v1/agents", as: key, valid: fields{"name": "n", "scopes": list()}},
		{method: "POST", path: "/sessions", as: key, valid: fields{"agent_id": w.agent.id}},
		{method: "PATCH", path: "/sessions/" + session, as: key, valid: fields{"max_actions": 5}},
		{method: "POST", path: "/v1/actions", as: key, valid: batchOf(fields{"session_id": session})},
		{method: "POST", path: "/v1/actions", as: both(access, keyed("k")), valid: batchOf(fields{"session_id": session})},
		{method: "GET", path: "/v1/transactions", as: access},
		{method: "GET", path: "/v1/transactions/" + transaction, as: access},
		{method: "POST", path: "/v1/transactions", as: access, valid: fields{"action_type": "call", "pre_state": fields{}}},
		{method: "PATCH", path: "/v1/transactions/" + transaction, as: access, valid: fields{"value_usd": 2}},
		{method: "POST", path: "/v1/transactions/" + transaction + "/commit", as: access},
		{method: "POST", path: "/v1/transactions/" + transaction + "/rollback", as: key},
		{method: "GET", path: "/v1/agents/" + w.agent.id + "/events", as: access},
	} {
		answer := api.carryOut(harmless)
		t.Run("harmless "+harmless.method+" "+strings.ReplaceAll(harmless.path, "/", " "), func(t *testing.T) { answer.in(t).unavailable() })
	}
	lost(mini, false)
	if found := differences(w.session(session), before); found != "" {
		t.Errorf("the session has changed: %s", found)
	}
}

// A Redis that is there and silent is the worst: the service must not wait with it.
func TestACallToASilentRedisTimesOut(t *testing.T) {
	t.Parallel()
	redis := privateRedis(t)
	api := start(t, setup{redis: redis.URL()})
	w := api.newTenant()
	session, tokens := w.newSession(nil), w.exchange()

	must(0, syscall.Kill(redis.PID(), syscall.SIGSTOP))(t)
	t.Cleanup(func() { _ = syscall.Kill(redis.PID(), syscall.SIGCONT) })
	began := time.Now()
	w.post("/sessions/"+session+"/actions", fields{}, asAgent(tokens.access)).refused(503, "outcome_unknown").comeAgain()
	w.get("/sessions/"+session, asAgent(tokens.access)).unavailable()
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("two answers took %s", took)
	}

	must(0, syscall.Kill(redis.PID(), syscall.SIGCONT))(t)
	eventually(t, "the service has its Redis again", func() bool {
		return w.get("/sessions/"+session, asAgent(tokens.access)).status == 200
	})
	if got := w.session(session)["action_count"]; got != num(0) && got != num(1) {
		t.Errorf("action_count %v after one charge of unknown outcome: it was sent twice", got)
	}
}
