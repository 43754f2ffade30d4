package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
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
	for name, platform := range workloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
				w, f := api.newTenant(), newForeignIssuer(t, platform.issuer, platform.algorithm)
				trusted := w.trust(f, platform.rule)
				assertion := f.signWith(platform.header, platform.claims)
				for range 2 { // such a token is presented until the platform replaces it
					granted := w.present(assertion).is(200)
					granted.exactly(aLoneGrant("read write"))
					_, claims := verify(t, w.client, granted.text("access_token"))
					if claims["sub"] != w.agent.id || claims["org_id"] != w.org {
						t.Errorf("granted %v", claims)
					}
					w.get("/sessions", asAgent(granted.text("access_token"))).is(200)
				}
				w.through(api.another(t)).present(assertion, "scope", "read").is(200).exactly(aLoneGrant("read"))
				if f.reads.Load() != 2 {
					t.Errorf("the keys were read %d times by two instances", f.reads.Load())
				}
				issued := w.get("/v1/agents/"+w.agent.id+"/events", asKey(w.key)).is(200).array()
				last := issued[len(issued)-1]
				if last["type"] != "token.issued" || last["trusted_issuer_id"] != trusted || last["family_id"] == nil {
					t.Errorf("the last event is %v", last)
				}
			})
		})
	}
}

func TestATokenOfAnIssuerWithInlineKeysIsExchanged(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for _, algorithm := range []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"} {
			f := newForeignIssuer(t, "https://idp.example/"+algorithm, algorithm)
			w.trustKey(f, object{"sub": "job"})
			w.present(f.sign(object{"sub": "job"})).is(200)
			w.present(f.signWith(object{"kid": nil, "typ": "JOSE"}, object{"sub": "job"})).is(200)
			w.present(f.sign(object{"sub": "Job"})).untrusted()
			if f.reads.Load() != 0 {
				t.Error("keys were read from elsewhere")
			}
		}
	})
}

// Each row is a token that the rule would give to the agent but for one thing. What is wrong with a JWT itself, internal/token shows.
func TestANearMissIsExchangedForNothing(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w, stranger := api.newTenant(), api.newTenant()
		colleague := w.newAgent()
		const name, sub = "https://idp.example", "repo:acme/app:ref:refs/heads/main"
		f := newForeignIssuer(t, name, "RS256")
		id := w.post(issuersPath, fields{"issuer": name, "jwks_uri": f.jwksURI, "rules": []any{
			issuerRule(w.agent.id, object{"sub": sub, "project": "acme/*"}),
			issuerRule(colleague.id, object{"sub": "repo:acme/other"}),
		}}, asKey(w.key)).is(201).text("id")
		own := newForeignIssuer(t, "https://stranger.example", "RS256")
		stranger.trust(own, object{"sub": sub})
		good := object{"sub": sub, "project": "acme/app"}
		ahead := func(seconds int64) int64 { return time.Now().Unix() + seconds }
		w.present(f.sign(good)).is(200)
		refused := w.present("x").untrusted()

		for name, claims := range map[string]object{
			"another audience":                {"aud": "https://other.example"},
			"an array without our audience":   {"aud": []string{"https://other.example", issuer + "/"}},
			"no audience":                     {"aud": nil},
			"a subject that is longer":        {"sub": sub + "2"},
			"a project that begins like it":   {"project": "acme2/app"},
			"no project":                      {"project": nil},
			"no subject":                      {"sub": nil},
			"the subject of another agent":    {"sub": "repo:acme/other"},
			"an issuer with a trailing slash": {"iss": "https://idp.example/"},
			"an issuer without trust":         {"iss": "https://evil.example"},
			"an issuer of another tenant":     {"iss": "https://stranger.example"},
			"an issuer that is an array":      {"iss": []string{"https://idp.example"}},
			"no issuer":                       {"iss": nil},
			"expired":                         {"exp": ahead(-31)},
			"longer than assertions may be":   {"long": strings.Repeat("x", 6200)},
		} {
			t.Run(name, func(t *testing.T) {
				wantSameAnswer(t, refused, w.through(w.in(t)).present(f.sign(changed(good, claims))).untrusted())
			})
		}

		now := time.Now().Unix()
		usual := changed(good, object{"iss": name, "aud": issuer, "iat": now, "exp": now + 600})
		header := object{"alg": "RS256", "kid": f.kid, "typ": "JWT"}
		token := f.key.Sign(header, usual)
		impostor := newForeignIssuer(t, name, "RS256")
		for name, assertion := range map[string]string{
			"signed by another":              impostor.sign(good),
			"signed by the stranger's":       own.sign(changed(good, object{"iss": name})),
			"another key, by a kid":          f.signWith(object{"kid": "key-2"}, good),
			"an embedded key":                impostor.key.Sign(changed(header, object{"jwk": impostor.publicKey()}), usual),
			"an access token's type":         f.key.Sign(changed(header, object{"typ": "at+jwt"}), usual),
			"a changed signature":            token[:len(token)-4] + "AAAA",
			"an access token of the service": w.exchange().access,
		} {
			t.Run(name, func(t *testing.T) {
				wantSameAnswer(t, refused, w.through(w.in(t)).present(assertion).untrusted())
			})
		}

		for name, client := range map[string]string{
			"another agent":            colleague.id,
			"a stranger's agent":       stranger.agent.id,
			"the organization":         w.org,
			"an agent that is unknown": uuid.NewString(),
			"no id":                    "scout",
		} {
			t.Run(name, func(t *testing.T) {
				wantSameAnswer(t, refused, w.in(t).postForm("/oauth2/token", byAssertion(client, f.sign(good))).untrusted())
			})
		}

		for name, edge := range map[string]object{
			"an array with our audience":  {"aud": []string{"https://other.example", issuer}},
			"just expired":                {"exp": ahead(-25)},
			"valid for years":             {"exp": ahead(10 * 365 * 86400), "iat": 1},
			"a project with more slashes": {"project": "acme/group/app"},
		} {
			t.Run(name, func(t *testing.T) { w.through(w.in(t)).present(f.sign(changed(good, edge))).is(200) })
		}
		w.delete(issuersPath+"/"+id, asKey(w.key)).is(204)
		wantSameAnswer(t, refused, w.present(f.sign(good)).untrusted())
	})
}

func TestOnlyTheAssertionAuthenticatesItsExchange(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w, f := api.newJobs()
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
			ask.refusedOAuth(400, "invalid_request")
			if ask.status != 400 {
				t.Error(name)
			}
		}
		w.present(assertion, "scope", "admin").refusedOAuth(400, "invalid_scope", lacking("admin"))
		w.postForm("/oauth2/introspect", byAssertion(w.agent.id, assertion, "token", "x")).refusedOAuth(401, "invalid_client")
		w.postForm("/oauth2/revoke", byAssertion(w.agent.id, assertion, "token", "x")).refusedOAuth(401, "invalid_client")
		w.present(assertion).is(200)
	})
}

func TestAWorkloadsTokenIsForTheResourceThatItNames(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w, f := api.newJobs()
		assertion := f.sign(object{"sub": "job"})
		access := w.present(assertion, "resource", "https://api.example").is(200).text("access_token")
		if _, claims := verify(t, w.client, access); claims["aud"] != "https://api.example" {
			t.Errorf("it is for %v", claims["aud"])
		}
		w.get("/v1/auth/verify", asAgent(access)).refused(401, "invalid_token")
		w.get("/v1/auth/verify?audience=https%3A%2F%2Fapi.example", asAgent(access)).is(200)
		w.patch("/v1/agents/"+w.agent.id, fields{"audiences": list()}, asKey(w.key)).is(200)
		w.present(assertion, "resource", "https://api.example").refusedOAuth(400, "invalid_target")
		w.present(assertion).is(200)
	})
}

func TestAnAgentThatIsNotLiveGetsNothingForAnAssertion(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w, f := api.newJobs()
		assertion, there := f.sign(object{"sub": "job"}), w.through(api.another(t))
		access := there.present(assertion).is(200).text("access_token")
		path := "/v1/agents/" + w.agent.id
		w.post(path+"/suspend", nil, asKey(w.key)).is(200)
		there.present(assertion).refusedOAuth(400, "unauthorized_client", suspendedAgent)
		there.get("/v1/auth/verify", asAgent(access)).refused(403, "agent_suspended")
		w.post(path+"/resume", nil, asKey(w.key)).is(200)
		there.present(assertion).is(200)
		w.patch(path, fields{"scopes": list("read")}, asKey(w.key)).is(200)
		there.present(assertion).is(200).exactly(aLoneGrant("read"))
		w.post(path+"/revoke", nil, asKey(w.key)).is(200)
		there.present(assertion).untrusted()
		there.get("/v1/auth/verify", asAgent(access)).is(401)
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
		w.patch(path, fields{"jwks_uri": other.jwksURI}, asKey(w.key)).is(200)
		there.present(f.sign(object{"sub": "task"})).untrusted()
		there.present(other.sign(object{"sub": "task"})).is(200)
		w.patch(path, fields{"jwks": object{"keys": []any{f.publicKey()}}}, asKey(w.key)).is(200)
		there.present(f.sign(object{"sub": "task"})).is(200)
		there.present(other.sign(object{"sub": "task"})).untrusted()
		w.delete(path, asKey(w.key)).is(204)
		there.present(f.sign(object{"sub": "task"})).untrusted()
		w.trust(other, object{"sub": "job"})
		there.present(other.sign(object{"sub": "job"})).is(200)
	})
}

func TestAKeyThatItsIssuerRotatedAwayVerifiesNothing(t *testing.T) {
	t.Parallel()
	var later atomic.Int64 // seconds
	with := setup{keySets: jwksfetch.Config{AllowPrivate: true, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load()) * time.Second) }}}
	api := onMiniredis(t, with)
	w, f := api.newJobs()
	old := f.sign(object{"sub": "job"})
	w.present(old).is(200)
	f.rotate("key-2")
	w.present(f.sign(object{"sub": "job"})).untrusted()
	f.publish(f.publicKey())
	later.Add(61) // the keys are read again for one that they lack, at most once a minute
	w.present(f.sign(object{"sub": "job"})).is(200)
	w.present(old).untrusted()
	if got := f.reads.Load(); got != 2 {
		t.Errorf("the keys were read %d times", got)
	}
}

// What a host does wrong leaves the assertion's issuer without keys, and is no fault of the assertion: it may come again.
func TestKeysThatCannotBeReadAreNoFaultOfTheAssertion(t *testing.T) {
	t.Parallel()
	f := newForeignIssuer(t, "https://idp.example", "ES256")
	large := strings.Repeat(" ", 1<<20)
	for name, host := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, f.jwksURI, http.StatusFound) },
		"an error":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusInternalServerError) },
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"no keys":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"a symmetric key": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
		},
		"100 MB": func(w http.ResponseWriter, _ *http.Request) { writeUntilRefused(w, large, 100) },
		"100 MB announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "104857600")
			_, _ = w.Write([]byte(large))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := onMiniredis(t, ofThisMachine)
			w := api.newTenant()
			broken := httptest.NewServer(host)
			t.Cleanup(broken.Close)
			w.post(issuersPath, fields{"issuer": f.name, "jwks_uri": broken.URL, "rules": []any{issuerRule(w.agent.id, object{"sub": "job"})}},
				asKey(w.key)).is(201)
			w.present(f.sign(object{"sub": "job"})).refusedOAuth(503, "temporarily_unavailable", own("unavailable"))
			w.present(f.sign(object{"sub": "other"})).untrusted() // and no stranger learns of it
		})
	}
	t.Run("a private address", func(t *testing.T) {
		t.Parallel()
		api := onMiniredis(t, setup{})
		w := api.newTenant()
		private := strings.Replace(f.jwksURI, "http://", "https://", 1)
		w.post(issuersPath, fields{"issuer": f.name, "jwks_uri": private, "rules": []any{issuerRule(w.agent.id, object{"sub": "job"})}},
			asKey(w.key)).is(201)
		w.present(f.sign(object{"sub": "job"})).refusedOAuth(503, "temporarily_unavailable", own("unavailable"))
	})
}

// writeUntilRefused writes a text so many times, or until the client hangs up.
func writeUntilRefused(w http.ResponseWriter, text string, times int) {
	for range times {
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
	}
}

func TestAKeySetThatHangsDelaysNoOtherTenant(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, ofThisMachine)
	hostile, good := api.newTenant(), api.newTenant()
	f := newForeignIssuer(t, "https://idp.example", "ES256")
	good.trust(f, object{"sub": "job"})
	release, asked := make(chan struct{}), make(chan struct{}, 1024)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	var waiting atomic.Int64
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	for i := range 32 {
		name := "https://hostile.example/" + uuid.NewString()
		hostile.post(issuersPath, fields{"issuer": name, "jwks_uri": hanging.URL + "/" + uuid.NewString(),
			"rules": []any{issuerRule(hostile.agent.id, object{"sub": "job"})}}, asKey(hostile.key)).is(201)
		assertion := f.sign(object{"iss": name, "sub": "job"})
		for range 1 + i%2 {
			waiting.Add(1)
			all.Go(func() {
				defer waiting.Add(-1)
				_, _ = hostile.try("POST", "/oauth2/token", byAssertion(hostile.agent.id, assertion), header("Content-Type", "application/x-www-form-urlencoded"))
			})
		}
	}
	for range 2 {
		<-asked
	}
	good.present(f.sign(object{"sub": "job"})).is(200)
	if waiting.Load() == 0 {
		t.Error("the hostile tenant's requests had ended before: the test proves nothing")
	}
}

func TestWrongAssertionsAreLimitedAsWrongSecretsAre(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, f := api.newTenant(), newForeignIssuer(t, "https://idp.example", "ES256")
		w.trustKey(f, object{"sub": "job"})
		limited := w.through(api.limited(t, server.Limits{FailedAuthPerMinute: 2}))
		good := f.sign(object{"sub": "job"})
		for range 2 {
			limited.present(good).is(200)
			limited.present(f.sign(object{"sub": "other"})).untrusted()
		}
		limited.present(good).is(200) // one that has succeeded always passes
		limited.present(f.sign(object{"sub": "other"})).refusedOAuth(429, "temporarily_unavailable", own("rate_limited"))
		limited.present("x").refusedOAuth(429, "temporarily_unavailable", own("rate_limited"))
		_, metrics := scraped(t, limited.on.address, "GET", "/metrics")
		for _, line := range []string{`remit_tokens_issued_total{grant="trusted_issuer"} 3`, `remit_issuer_tokens_refused_total{cause="rule"} 2`} {
			if !strings.Contains(metrics, line+"\n") {
				t.Errorf("there is no line %s", line)
			}
		}
	})
}
