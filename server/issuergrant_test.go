package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/jwksfetch"
	"remit/server"
)

// ofThisMachine lets the keys of issuers be read from this machine, where the tests run them.
var ofThisMachine = setup{keySets: jwksfetch.Config{AllowPrivate: true}}

func TestAWorkloadsOwnTokenIsExchangedForItsAgents(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		for name, platform := range workloads {
			w, f := api.newTenant(), newForeignIssuer(t, platform.issuer, platform.algorithm)
			trusted, assertion := w.trust(f, platform.rule), f.signWith(platform.header, platform.claims)
			for range 2 { // such a token is presented until the platform replaces it
				granted := w.present(assertion).is(200).exactly(aLoneGrant("read write"))
				_, claims := verify(t, w.client, granted.text("access_token"))
				if claims["sub"] != w.agent.id || claims["org_id"] != w.org {
					t.Errorf("%s: granted %v", name, claims)
				}
				w.get("/sessions", asAgent(granted.text("access_token"))).is(200)
			}
			access := w.present(assertion, "scope", "read", "resource", "https://api.example").is(200).exactly(aLoneGrant("read")).text("access_token")
			w.get("/v1/auth/verify", asAgent(access)).refused(401, "invalid_token")
			w.get("/v1/auth/verify?audience=https%3A%2F%2Fapi.example", asAgent(access)).is(200)
			wantEqual(t, name+": how often the keys were read", f.reads.Load(), 1)
			issued := w.get("/v1/agents/"+w.agent.id+"/events", asKey(w.key)).is(200).array()
			last := issued[len(issued)-1]
			if last["type"] != "token.issued" || last["trusted_issuer_id"] != trusted || last["family_id"] == nil {
				t.Errorf("%s: the last event is %v", name, last)
			}
			// Another organization has the same keys read for itself.
			other := api.newTenant()
			other.trust(f, platform.rule)
			other.present(assertion).is(200)
			wantEqual(t, name+": how often two organizations read the keys", f.reads.Load(), 2)
		}
	})
}

// Each row is a token that the rule would give to the agent but for one thing. What is wrong with a JWT itself, and which claims match,
// internal/token shows.
func TestANearMissIsExchangedForNothing(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w, stranger := api.newTenant(), api.newTenant()
		colleague := w.newAgent()
		const name, sub = "https://idp.example", "repo:acme/app:ref:refs/heads/main"
		f, own := newForeignIssuer(t, name, "RS256"), newForeignIssuer(t, "https://stranger.example", "RS256")
		w.post(issuersPath, fields{"issuer": name, "jwks_uri": f.jwksURI, "rules": []any{
			issuerRule(w.agent.id, object{"sub": sub, "project": "acme/*"}),
			issuerRule(colleague.id, object{"sub": "repo:acme/other"}),
		}}, asKey(w.key)).is(201)
		stranger.trust(own, object{"sub": sub})
		good, now := object{"sub": sub, "project": "acme/app"}, time.Now().Unix()
		refused := w.present("x").untrusted()
		near := map[string]string{}
		for name, claims := range map[string]object{
			"another audience":                {"aud": "https://other.example"},
			"an array without our audience":   {"aud": []string{"https://other.example", issuer + "/"}},
			"no audience":                     {"aud": nil},
			"no subject":                      {"sub": nil},
			"the subject of another agent":    {"sub": "repo:acme/other"},
			"an issuer with a trailing slash": {"iss": "https://idp.example/"},
			"an issuer without trust":         {"iss": "https://evil.example"},
			"an issuer of another tenant":     {"iss": "https://stranger.example"},
			"an issuer that is an array":      {"iss": []string{"https://idp.example"}},
			"no issuer":                       {"iss": nil},
			"expired":                         {"exp": now - 31},
			"longer than assertions may be":   {"long": strings.Repeat("x", 6200)},
		} {
			near[name] = f.sign(changed(good, claims))
		}
		token, impostor := f.sign(good), newForeignIssuer(t, name, "RS256")
		near["signed by another"] = impostor.sign(good)
		near["signed by the stranger's"] = own.sign(changed(good, object{"iss": name}))
		near["another key, by a kid"] = f.signWith(object{"kid": "key-2"}, good)
		near["an embedded key"] = impostor.signWith(object{"jwk": impostor.publicKey()}, good)
		near["an access token's type"] = f.signWith(object{"typ": "at+jwt"}, good)
		near["a changed signature"] = token[:len(token)-4] + "AAAA"
		near["an access token of the service"] = w.exchange().access
		for name, assertion := range near {
			if wantSameAnswer(t, refused, w.present(assertion).untrusted()); t.Failed() {
				t.Fatal(name)
			}
		}
		for _, client := range []string{colleague.id, stranger.agent.id, w.org, uuid.NewString(), "scout"} {
			wantSameAnswer(t, refused, w.postForm("/oauth2/token", byAssertion(client, token)).untrusted())
		}
		for _, edge := range []object{
			{}, {"aud": []string{"https://other.example", issuer}}, {"exp": time.Now().Unix() - 15}, {"exp": now + 10*365*86400, "iat": 1}, {"project": "acme/group/app"},
		} {
			w.present(f.sign(changed(good, edge))).is(200)
		}
	})
}

func TestOnlyTheAssertionAuthenticatesItsExchange(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w, f := api.newTenant(), newForeignIssuer(t, "https://idp.example", "ES256")
		w.trust(f, object{"sub": "job"})
		assertion := f.sign(object{"sub": "job"})
		grant := []string{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}
		for name, ask := range map[string]*response{
			"without client_id":       w.postForm("/oauth2/token", form(append(grant, "assertion", assertion)...)),
			"without an assertion":    w.postForm("/oauth2/token", form(append(grant, "client_id", w.agent.id)...)),
			"with a secret":           w.present(assertion, "client_secret", w.agent.secret),
			"with Basic":              w.postForm("/oauth2/token", byAssertion(w.agent.id, assertion), byBasic(w.agent)),
			"with a client assertion": w.present(assertion, "client_assertion", assertion, "client_assertion_type", "x"),
			"with two assertions":     w.postForm("/oauth2/token", byAssertion(w.agent.id, assertion)+"&assertion="+raw(assertion)),
		} {
			if ask.refusedOAuth(400, "invalid_request"); t.Failed() {
				t.Fatal(name)
			}
		}
		w.present(assertion, "scope", "admin").refusedOAuth(400, "invalid_scope", lacking("admin"))
		w.postForm("/oauth2/introspect", byAssertion(w.agent.id, assertion, "token", "x")).refusedOAuth(401, "invalid_client")
		w.postForm("/oauth2/revoke", byAssertion(w.agent.id, assertion, "token", "x")).refusedOAuth(401, "invalid_client")
		path := "/v1/agents/" + w.agent.id
		w.patch(path, fields{"audiences": list()}, asKey(w.key)).is(200)
		w.present(assertion, "resource", "https://api.example").refusedOAuth(400, "invalid_target")
		w.present(assertion).is(200)
		w.post(path+"/suspend", nil, asKey(w.key)).is(200)
		w.present(assertion).refusedOAuth(400, "unauthorized_client", suspendedAgent)
		w.post(path+"/revoke", nil, asKey(w.key)).is(200)
		w.present(assertion).untrusted()
	})
}

func TestAChangeOfATrustedIssuerCountsAtOnceEverywhere(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w, f := api.newTenant(), newForeignIssuer(t, "https://idp.example", "ES256")
		path := issuersPath + "/" + w.trust(f, object{"sub": "job"})
		there, other := w.through(api.another(t)), newForeignIssuer(t, "https://idp.example", "ES256")
		there.present(f.sign(object{"sub": "job"})).is(200)
		w.patch(path, fields{"rules": []any{issuerRule(w.agent.id, object{"sub": "task"})}}, asKey(w.key)).is(200)
		there.present(f.sign(object{"sub": "job"})).untrusted()
		there.present(f.sign(object{"sub": "task"})).is(200)
		w.patch(path, fields{"jwks": object{"keys": []any{other.publicKey()}}}, asKey(w.key)).is(200)
		there.present(f.sign(object{"sub": "task"})).untrusted()
		there.present(other.signWith(object{"kid": nil, "typ": "JOSE"}, object{"sub": "task"})).is(200)
		w.delete(path, asKey(w.key)).is(204)
		there.present(other.sign(object{"sub": "task"})).untrusted()
		if other.reads.Load() != 0 {
			t.Error("keys were read from elsewhere")
		}
	})
}

// What a host does wrong leaves the assertion's issuer without keys, and is no fault of the assertion: it may come again.
func TestKeysThatCannotBeReadAreNoFaultOfTheAssertion(t *testing.T) {
	t.Parallel()
	f := newForeignIssuer(t, "https://idp.example", "ES256")
	for uri, with := range map[string]setup{f.jwksURI: ofThisMachine, strings.Replace(f.jwksURI, "http:", "https:", 1): {}} {
		f.publish()
		w := onMiniredis(t, with).newTenant()
		w.post(issuersPath, fields{"issuer": f.name, "jwks_uri": uri, "rules": []any{issuerRule(w.agent.id, object{"sub": "job"})}}, asKey(w.key)).is(201)
		w.present(f.sign(object{"sub": "job"})).refusedOAuth(503, "temporarily_unavailable", own("unavailable"))
		w.present(f.sign(object{"sub": "other"})).untrusted() // and no stranger learns of it
	}
}

func TestWrongAssertionsAreLimitedAsWrongSecretsAre(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		f := newForeignIssuer(t, "https://idp.example", "ES256")
		w.trustKey(f, object{"sub": "job"})
		with := w.on.setup
		with.limits = server.Limits{FailedAuthPerMinute: 2}
		limited := w.through(run(t, &instance{setup: with, keyring: w.on.keyring}))
		good := f.sign(object{"sub": "job"})
		for range 2 {
			limited.present(good).is(200)
			limited.present(f.sign(object{"sub": "other"})).untrusted()
		}
		limited.present(good).is(200) // one that has succeeded always passes
		limited.present(f.sign(object{"sub": "other"})).refusedOAuth(429, "temporarily_unavailable", own("rate_limited"))
		limited.present("x").refusedOAuth(429, "temporarily_unavailable", own("rate_limited"))
		limited.wantMetrics(`remit_tokens_issued_total{grant="trusted_issuer"} 3`, `remit_issuer_tokens_refused_total{cause="rule"} 2`)
	})
}
