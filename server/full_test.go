package server_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// configure sets a parameter of a running Redis.
func configure(t *testing.T, url, parameter, value string) {
	t.Helper()
	admin := redis.NewClient(must(redis.ParseURL(url))(t))
	defer admin.Close()
	must(admin.ConfigSet(t.Context(), parameter, value).Result())(t)
}

// An agent may have filled Redis: its organization must be able to stop it.
func TestWhenRedisIsFullAgentsAreReadAndStoppedAndNothingElseIsWritten(t *testing.T) {
	t.Parallel()
	url := privateRedis(t).URL()
	api := start(t, setup{redis: url})
	w := api.newTenant()
	session, ending := w.newSession(nil), w.newSession(nil)
	tokens, leaked := w.exchange(), w.exchange()
	pending := w.beginAs(asAgent(tokens.access), fields{"session_id": session, "value_usd": 1}).is(201).text("id")
	access, key := asAgent(tokens.access), asKey(w.key)

	leasing := w.leasing(nil)
	lease := w.lease(leasing, fields{"max_actions": 4, "max_value_usd": 2}, access).is(201).text("id")

	f := newForeignIssuer(t, "https://idp.example", "ES256")
	trust := issuersPath + "/" + w.trustKey(f, object{"sub": "job"})

	configure(t, url, "maxmemory", "1")
	for _, e := range []bodyEndpoint{
		{method: "POST", path: "/v1/organizations", as: anonymous, valid: fields{"name": "n"}},
		{method: "POST", path: "/v1/agents", as: key, valid: fields{"name": "n", "scopes": list()}},
		{method: "POST", path: "/v1/auth/token", as: anonymous, valid: fields{"agent_id": w.agent.id, "secret": w.agent.secret}},
		{method: "POST", path: "/v1/auth/refresh", as: anonymous, valid: fields{"refresh_token": tokens.refresh}},
		{method: "POST", path: "/sessions", as: key, valid: fields{"agent_id": w.agent.id}},
		{method: "PATCH", path: "/sessions/" + session, as: key, valid: fields{"max_actions": 500}},
		{method: "POST", path: "/sessions/" + session + "/actions", as: access, valid: fields{"count": 1}},
		{method: "POST", path: "/v1/auth/authorize?session_id=" + session, as: access},
		{method: "POST", path: "/v1/transactions", as: access, valid: fields{"action_type": "call", "pre_state": fields{}}},
		{method: "POST", path: "/sessions/" + leasing + "/leases", as: access, valid: fields{"max_actions": 1, "expires_in_seconds": 1}},
		{method: "PATCH", path: "/v1/transactions/" + pending, as: access, valid: fields{"value_usd": 2}},
		{method: "POST", path: "/v1/transactions/" + pending + "/commit", as: access, valid: fields{"post_state": fields{}}},
	} {
		api.carryOut(e).unavailable()
	}
	batch := w.post("/v1/actions", batchOf(fields{"session_id": session}), access).is(200).items(1)
	if batch[0].status != 503 {
		t.Errorf("a charge in a batch: %+v", batch[0])
	}
	full := w.get("/readyz")
	full.unavailable()
	if got, want := full.detail(), "Redis is full: it has reached its maxmemory and refuses writes"; got != want {
		t.Errorf("readyz says %q, want %q", got, want)
	}

	for _, path := range []string{"/sessions/" + session, "/sessions", "/v1/transactions", "/v1/transactions/" + pending,
		"/v1/agents/" + w.agent.id + "/events", "/v1/auth/verify"} {
		w.get(path, access).is(200)
	}
	w.post("/v1/transactions/"+pending+"/rollback", nil, key).is(200)
	w.post("/sessions/"+ending+"/end", nil, access).is(200)
	renew := fields{"action_count": 1, "value_used_usd": 1, "renew": fields{"max_actions": 1, "expires_in_seconds": 1}}
	settled := w.post("/v1/leases/"+lease+"/settle", renew, access).is(200).object()
	if refusal, _ := settled["refusal"].(map[string]any); settled["renewed"] != nil || refusal["code"] != "unavailable" {
		t.Errorf("a full Redis renewed a lease: %v", settled)
	}
	w.post("/v1/auth/revoke", fields{"refresh_token": leaked.refresh}, access).is(200)
	w.get("/v1/auth/verify", asAgent(leaked.access)).refused(401, "invalid_token")
	w.present(f.sign(object{"sub": "job"})).refusedOAuth(503, "temporarily_unavailable", own("unavailable"))
	w.delete(trust, key).is(204)
	w.present(f.sign(object{"sub": "job"})).untrusted()
	w.post("/v1/agents/"+w.agent.id+"/secret/rotate", nil, key).is(200)
	w.revoke()
	w.get("/v1/auth/verify", access).refused(401, "invalid_token")
	renewed := w.post("/v1/organizations/"+w.org+"/api-key/rotate", fields{"grace_seconds": 0}, key).is(200).text("api_key")
	w.get("/v1/agents", key).refused(401, "invalid_api_key")

	configure(t, url, "maxmemory", "0")
	w.get("/readyz").is(200)
	if got := w.get("/sessions/"+session, asKey(renewed)).is(200).object(); got["status"] != "revoked" || got["action_count"] != num(1) {
		t.Errorf("the session is %v", got)
	}
}
