package server_test

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// A log is read by more people than a store, and kept longer.
func TestNoCredentialReachesTheLog(t *testing.T) {
	t.Parallel()
	log, mini := &syncBuffer{}, miniredis.RunT(t)
	api := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini, log: log})
	used := api.useEachEndpoint()

	w := api.newTenant()
	session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
	for _, credential := range []string{w.key, w.agent.secret, tokens.access, tokens.refresh, w.sessionKey(session)} {
		used = append(used, credential)
		api.misplace(credential, asKey(w.key), asAgent(tokens.access))
	}

	spent := w.exchange()
	next := pairIn(api.post("/v1/auth/refresh", fields{"refresh_token": spent.refresh}).is(200))
	api.post("/v1/auth/refresh", fields{"refresh_token": spent.refresh}).is(401)
	used = append(used, spent.access, spent.refresh, next.access, next.refresh)

	for _, trouble := range []func(){
		func() { mini.SetError("LOADING Redis is loading") },
		func() { mini.SetError("ERR something else") },
		func() { mini.SetError(""); lost(mini, true) },
		mini.Close,
	} {
		trouble()
		for _, e := range everyEndpoint(w, tokens, session, transaction, transaction) {
			if r := api.carryOut(e); r.status < 500 {
				t.Errorf("%s: %d while there is trouble with the store", r.what, r.status)
			}
		}
	}

	logged := log.String()
	for _, wanted := range []string{"refresh token reused", "code=unavailable", "code=outcome_unknown"} {
		if !strings.Contains(logged, wanted) {
			t.Errorf("the log lacks %q: the test proves nothing", wanted)
		}
	}
	for _, credential := range used {
		for _, part := range []string{credential[:20], credential[len(credential)-20:]} {
			if strings.Contains(logged, part) {
				t.Errorf("the log has %s of the credential %s", part, credential)
			}
		}
	}
}

// useEachEndpoint lets a tenant of its own use each endpoint with success, and returns all credentials that were used
// and given out.
func (c *client) useEachEndpoint() []string {
	c.t.Helper()
	var used []string
	for i := range everyEndpoint(tenant{}, pair{}, "", "", "") {
		w := c.newTenant()
		w.objects = w.oneOfEach()
		tokens := w.exchange()
		used = append(used, w.key, w.agent.secret, tokens.access, tokens.refresh)
		e := everyEndpoint(w, tokens, w.objects["SessionId"], w.objects["TransactionId"], w.objects["TransactionId"])[i]
		if e.path == "/v1/budget" && e.method != "PUT" {
			w.put("/v1/budget", fields{"max_value_usd": 1, "period": "none"}, asKey(w.key)).is(200)
		}
		r := c.carryOut(e)
		if r.status >= 300 {
			c.t.Errorf("%s: %d %s", r.what, r.status, r.body)
		}
		if !strings.HasPrefix(string(r.body), "{") {
			continue
		}
		for _, field := range []string{"api_key", "secret", "access_token", "refresh_token", "key"} {
			if given, ok := r.object()[field].(string); ok {
				used = append(used, given)
			}
		}
	}
	return used
}

// misplace sends a credential in every place where one can end up by mistake. What comes back may quote it: that goes to
// who sent it.
func (c *client) misplace(credential string, key, access option) {
	get := func(path string, options ...option) { _, _ = c.try("GET", path, nil, options...) }
	post := func(path string, body any, options ...option) { _, _ = c.try("POST", path, body, options...) }
	get("/"+credential, header("X-Request-Id", credential+"!"), header("User-Agent", credential))
	get("/v1/agents/"+credential, key)
	get("/v1/agents?"+credential+"="+credential, key)
	get("/sessions?cursor="+credential+"&status="+credential+"&agent_id="+credential, key)
	get("/sessions", asKey(credential))
	get("/sessions", asAgent(credential))
	get("/sessions", header("Authorization", "Basic "+credential))
	post("/v1/organizations", fields{credential: credential})
	post("/v1/organizations", raw("{"+credential))
	post("/v1/auth/token", fields{"agent_id": credential, "secret": credential})
	post("/v1/auth/token", fields{"agent_id": "018f4d5e-0000-7000-8000-000000000000", "secret": credential})
	post("/v1/auth/refresh", fields{"refresh_token": credential + "x"})
	post("/v1/auth/revoke", fields{"refresh_token": credential + "x"}, access)
	c.exchangeRaw("GET /healthz HTTP/1.1\r\nX-API-Key: " + credential + "\r\n\r\n")
	c.exchangeRaw("GET /" + credential + "\r\n\r\n")
}
