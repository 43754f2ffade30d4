package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/jwksfetch"
	"remit/test/prover"
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// signer is an agent that signs assertions.
type signer struct {
	tenant
	id  string
	key *prover.Key
	kid string
}

// newSigner creates an agent with a key and without a secret.
func (w tenant) newSigner(algorithm string) signer {
	w.t.Helper()
	s := signer{tenant: w, key: prover.New(algorithm), kid: "first"}
	created := w.post("/v1/agents", fields{"name": "signer", "scopes": agentScopes, "secret": false, "jwks": s.keys()}, asKey(w.key))
	s.id = created.is(201).text("id")
	return s
}

func (s signer) keys() fields { return fields{"keys": []any{s.publicKey()}} }

func (s signer) publicKey() map[string]any {
	jwk := s.key.JWK()
	jwk["kid"] = s.kid
	return jwk
}

// claims are those of a good assertion, with these changed; nil removes one.
func (s signer) claims(changes fields) map[string]any {
	now := time.Now().Unix()
	claims := map[string]any{"iss": s.id, "sub": s.id, "aud": issuer, "jti": uuid.NewString(), "iat": now, "exp": now + 60}
	for name, value := range changes {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func (s signer) sign(changes fields) string {
	return s.key.Sign(map[string]any{"alg": s.key.Algorithm, "kid": s.kid}, s.claims(changes))
}

func asserted(assertion string, more ...string) raw {
	return form(append([]string{"client_assertion_type", assertionType, "client_assertion", assertion}, more...)...)
}

// exchangeBy asks for a token pair by an assertion.
func (c *client) exchangeBy(assertion string, more ...string) *response {
	c.t.Helper()
	return c.postForm("/oauth2/token", asserted(assertion, append([]string{"grant_type", "client_credentials"}, more...)...))
}

// notAuthenticated fails the test unless the answer is the one for every client that is not who it says.
func (r *response) notAuthenticated() *response {
	r.t.Helper()
	r.refusedOAuth(401, "invalid_client")
	if got, want := r.object()["error_description"], "the client's credentials are not those of a live agent"; got != want {
		r.t.Errorf("%s: it says %q, want %q", r.what, got, want)
	}
	return r
}

func TestAnAgentGetsTokensByAnAssertionThatItSigns(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, func(t *testing.T, api *client) {
				w := api.newTenant()
				s := w.newSigner(algorithm)
				for name, assertion := range map[string]string{
					"usual":                s.sign(nil),
					"the token endpoint":   s.sign(fields{"aud": issuer + "/oauth2/token"}),
					"an array of one":      s.sign(fields{"aud": []string{issuer}}),
					"ten minutes":          s.sign(fields{"exp": time.Now().Unix() + 600}),
					"no iat, with nbf":     s.sign(fields{"iat": nil, "nbf": time.Now().Unix() - 5}),
					"an expiry just now":   s.sign(fields{"exp": time.Now().Unix() - 5}),
					"a clock that is fast": s.sign(fields{"iat": time.Now().Unix() + 20, "exp": time.Now().Unix() + 615}),
					"a jti of 255 bytes":   s.sign(fields{"jti": strings.Repeat("j", 255)}),
					"other claims":         s.sign(fields{"scope": "ignored", "x": map[string]any{"y": []int{1}}}),
					"without kid":          s.key.Sign(map[string]any{"alg": algorithm, "typ": "JWT"}, s.claims(nil)),
					"with its media type":  s.key.Sign(map[string]any{"alg": algorithm, "typ": "client-authentication+jwt"}, s.claims(nil)),
				} {
					if r := s.exchangeBy(assertion); r.status != 200 {
						t.Errorf("%s: %d %s", name, r.status, r.body)
					}
				}
				granted := s.exchangeBy(s.sign(nil), "client_id", strings.ToUpper(s.id), "scope", "read").is(200)
				granted.exactly(fields{"access_token": anAccessToken, "token_type": "Bearer", "expires_in": 3600, "scope": "read", "refresh_token": aRefreshToken})
				api.get("/v1/auth/verify?scope=read", asAgent(granted.text("access_token"))).is(200)
				s.postForm("/oauth2/token", asserted(s.sign(nil), "grant_type", "refresh_token", "refresh_token", granted.text("refresh_token"))).is(200)
			})
		})
	}
}

// Each is the good assertion but for one thing, and none tells which. What is wrong with a JWT itself, internal/token shows.
func TestNearMissesOfAnAssertionAreRefusedAlike(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		s, other := w.newSigner("ES256"), w.newSigner("ES256")
		now := time.Now().Unix()
		head := map[string]any{"alg": "ES256", "kid": s.kid}
		with := func(changes map[string]any) map[string]any {
			all := map[string]any{"alg": "ES256", "kid": s.kid}
			for name, value := range changes {
				all[name] = value
			}
			return all
		}
		keyless := w.newAgent()
		revoked := w.newSigner("ES256")
		api.post("/v1/agents/"+revoked.id+"/revoke", nil, asKey(w.key)).is(200)
		for name, assertion := range map[string]string{
			"another audience":          s.sign(fields{"aud": "https://other.example"}),
			"the issuer with a slash":   s.sign(fields{"aud": issuer + "/"}),
			"the revocation endpoint":   s.sign(fields{"aud": issuer + "/oauth2/revoke"}),
			"this and another audience": s.sign(fields{"aud": []string{issuer, "https://other.example"}}),
			"both of its own names":     s.sign(fields{"aud": []string{issuer, issuer + "/oauth2/token"}}),
			"its own name twice":        s.sign(fields{"aud": []string{issuer, issuer}}),
			"no audience":               s.sign(fields{"aud": nil}),
			"expired":                   s.sign(fields{"exp": now - 31, "iat": now - 90}),
			"an exp too far":            s.sign(fields{"exp": now + 1000}),
			"no jti":                    s.sign(fields{"jti": nil}),
			"an empty jti":              s.sign(fields{"jti": ""}),
			"a jti of 256 bytes":        s.sign(fields{"jti": strings.Repeat("j", 256)}),
			"another iss":               s.sign(fields{"iss": other.id}),
			"another sub":               s.sign(fields{"sub": other.id}),
			"another agent's":           s.sign(fields{"sub": other.id, "iss": other.id}),
			"no sub":                    s.sign(fields{"sub": nil}),
			"an iss that is a URL":      s.sign(fields{"iss": "https://" + s.id}),
			"no id":                     s.sign(fields{"sub": "signer", "iss": "signer"}),
			"an unknown agent":          s.sign(fields{"sub": uuid.NewString(), "iss": uuid.NewString()}),
			"an agent without keys":     s.sign(fields{"sub": keyless.id, "iss": keyless.id}),
			"a revoked agent":           revoked.sign(nil),
			"another key":               other.key.Sign(head, s.claims(nil)),
			"the type of tokens":        s.key.Sign(with(fields{"typ": "at+jwt"}), s.claims(nil)),
			"an access token":           w.exchange().access,
			"nothing of a JWT":          "x",
		} {
			if s.exchangeBy(assertion).notAuthenticated(); t.Failed() {
				t.Fatalf("%s is not refused", name)
			}
			s.postForm("/oauth2/introspect", asserted(assertion, "token", "x")).in(t).isRefusedUnless(name == "the revocation endpoint")
		}
		for name, body := range map[string]raw{
			"another client_id":    asserted(s.sign(nil), "grant_type", "client_credentials", "client_id", other.id),
			"no client_id":         asserted(s.sign(nil), "grant_type", "client_credentials", "client_id", "signer"),
			"another kind of text": form("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer", "client_assertion", s.sign(nil), "grant_type", "client_credentials"),
		} {
			if s.postForm("/oauth2/token", body).notAuthenticated(); t.Failed() {
				t.Fatalf("%s is not refused", name)
			}
		}
		s.exchangeBy(s.sign(nil)).is(200)
	})
}

// isRefusedUnless is for rows that one endpoint refuses for another reason than the next.
func (r *response) isRefusedUnless(skipped bool) {
	r.t.Helper()
	if !skipped {
		r.notAuthenticated()
	}
}

// altered changes a character of the claims.
func altered(assertion string) string {
	at := strings.IndexByte(assertion, '.') + 20
	changed := byte('A')
	if assertion[at] == changed {
		changed = 'B'
	}
	return assertion[:at] + string(changed) + assertion[at+1:]
}

func TestAnAssertionAuthenticatesOnceAtAllInstances(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		s := w.newSigner("EdDSA")
		instances := []*client{api, api.another(t)}
		once := s.sign(nil)
		s.exchangeBy(once).is(200)
		for _, at := range instances {
			at.exchangeBy(once).notAuthenticated()
			at.postForm("/oauth2/introspect", asserted(once, "token", "x")).notAuthenticated()
			at.postForm("/oauth2/revoke", asserted(once, "token", "x")).notAuthenticated()
		}
		s.exchangeBy(s.sign(fields{"jti": "the same"})).is(200)
		instances[1].exchangeBy(s.sign(fields{"jti": "the same", "exp": time.Now().Unix() + 300})).notAuthenticated()
		w.newSigner("EdDSA").exchangeBy(s.sign(fields{"jti": "of another"})).is(200)

		for range 20 {
			assertion := s.sign(nil)
			var passed atomic.Int64
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					body := asserted(assertion, "grant_type", "client_credentials")
					if r, err := instances[i%2].try("POST", "/oauth2/token", body, header("Content-Type", "application/x-www-form-urlencoded")); err == nil && r.status == 200 {
						passed.Add(1)
					}
				})
			}
			all.Wait()
			if passed.Load() != 1 {
				t.Fatalf("%d of 8 requests at once passed", passed.Load())
			}
		}
	})
}

func TestARefusedGrantDoesNotUseUpItsAssertion(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		s := api.newTenant().newSigner("EdDSA")
		assertion := s.sign(nil)
		s.exchangeBy(assertion, "scope", "nothing:of:it").refusedOAuth(400, "invalid_scope", lacking("nothing:of:it"))
		s.postForm("/oauth2/token", asserted(assertion, "grant_type", "password")).refusedOAuth(400, "unsupported_grant_type")
		s.postForm("/oauth2/token", asserted(assertion)).refusedOAuth(400, "invalid_request")
		s.exchangeBy(assertion).is(200)
	})
}

func TestAClientIsAuthenticatedInOneWay(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		s := w.newSigner("EdDSA")
		grant := []string{"grant_type", "client_credentials"}
		for name, r := range map[string]*response{
			"with Basic":         s.postForm("/oauth2/token", asserted(s.sign(nil), grant...), byBasic(w.agent)),
			"with a secret":      s.exchangeBy(s.sign(nil), "client_id", w.agent.id, "client_secret", w.agent.secret),
			"with a token":       s.postForm("/oauth2/token", asserted(s.sign(nil), grant...), asAgent(w.exchange().access)),
			"without the type":   s.postForm("/oauth2/token", form(append(grant, "client_assertion", s.sign(nil))...)),
			"the type alone":     s.postForm("/oauth2/token", form(append(grant, "client_assertion_type", assertionType, "client_id", s.id)...)),
			"two of them":        s.postForm("/oauth2/token", asserted(s.sign(nil), append(grant, "client_assertion", s.sign(nil))...)),
			"a secret in JSON":   nil,
			"an empty assertion": s.postForm("/oauth2/token", asserted("", grant...)),
		} {
			if r == nil {
				s.post("/v1/auth/token", fields{"agent_id": s.id, "secret": ""}).refused(401, "invalid_credentials")
				continue
			}
			if r.refusedOAuth(400, "invalid_request"); t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

func TestAssertionsAuthenticateAtRevocationAndIntrospection(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		s := api.newTenant().newSigner("EdDSA")
		granted := s.exchangeBy(s.sign(nil)).is(200)
		for _, aud := range []string{issuer, issuer + "/oauth2/token", issuer + "/oauth2/introspect"} {
			described := s.postForm("/oauth2/introspect", asserted(s.sign(fields{"aud": aud}), "token", granted.text("access_token"))).is(200)
			if described.object()["active"] != true {
				t.Errorf("for %s: %s", aud, described.body)
			}
		}
		s.postForm("/oauth2/introspect", asserted(s.sign(fields{"aud": issuer + "/oauth2/revoke"}), "token", "x")).notAuthenticated()
		s.postForm("/oauth2/revoke", asserted(s.sign(fields{"aud": issuer + "/oauth2/revoke"}), "token", granted.text("refresh_token"))).is(200)
		api.get("/v1/auth/verify", asAgent(granted.text("access_token"))).refused(401, "invalid_token")
	})
}

func TestAKeyThatWasRotatedAwayAuthenticatesNothingAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		s := w.newSigner("EdDSA")
		there := api.another(t)
		next := s
		next.key, next.kid = prover.New("ES256"), "second"
		path := "/v1/agents/" + s.id
		s.exchangeBy(s.sign(nil)).is(200)
		there.exchangeBy(s.sign(nil)).is(200)
		w.patch(path, fields{"jwks": fields{"keys": []any{s.publicKey(), next.publicKey()}}}, asKey(w.key)).is(200)
		for _, at := range []*client{api, there} {
			at.exchangeBy(s.sign(nil)).is(200)
			at.exchangeBy(next.sign(nil)).is(200)
		}
		unused := s.sign(nil)
		w.patch(path, fields{"jwks": next.keys()}, asKey(w.key)).is(200)
		for _, at := range []*client{api, there} {
			at.exchangeBy(s.sign(nil)).notAuthenticated()
			at.exchangeBy(unused).notAuthenticated()
			at.exchangeBy(next.sign(nil)).is(200)
		}
		w.patch(path, fields{"jwks": nil}, asKey(w.key)).is(200)
		s.exchangeBy(next.sign(nil)).notAuthenticated()
	})
}

func TestASuspendedAgentsAssertionGetsNoToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		s := w.newSigner("EdDSA")
		w.post("/v1/agents/"+s.id+"/suspend", nil, asKey(w.key)).is(200)
		s.exchangeBy(s.sign(nil)).refusedOAuth(400, "unauthorized_client", suspendedAgent)
		s.exchangeBy(altered(s.sign(nil))).notAuthenticated()
		w.post("/v1/agents/"+s.id+"/resume", nil, asKey(w.key)).is(200)
		s.exchangeBy(s.sign(nil)).is(200)
	})
}

func TestAnAgentMayPublishItsKeys(t *testing.T) {
	t.Parallel()
	with := setup{keySets: jwksfetch.Config{AllowPrivate: true}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		s := w.newSigner("ES256")
		var published atomic.Pointer[fields]
		var asked atomic.Int64
		host := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			_ = json.NewEncoder(out).Encode(*published.Load())
		}))
		t.Cleanup(host.Close)
		published.Store(new(s.keys()))
		w.patch("/v1/agents/"+s.id, fields{"jwks_uri": host.URL + "/keys"}, asKey(w.key)).is(200)
		for range 3 {
			s.exchangeBy(s.sign(nil)).is(200)
		}
		s.exchangeBy(altered(s.sign(nil))).notAuthenticated()
		s.postForm("/oauth2/introspect", asserted(s.sign(nil), "token", "x")).is(200)
		if asked.Load() != 1 {
			t.Errorf("the keys were read %d times", asked.Load())
		}
		w.patch("/v1/agents/"+s.id, fields{"jwks_uri": host.URL + "/others"}, asKey(w.key)).is(200)
		published.Store(new(fields{"keys": []any{prover.New("ES256").JWK()}}))
		s.exchangeBy(s.sign(nil)).notAuthenticated()

		weak := s
		weak.key, weak.kid = &prover.Key{Algorithm: "RS256", Private: must(rsa.GenerateKey(rand.Reader, 1024))(t)}, "weak"
		w.patch("/v1/agents/"+s.id, fields{"jwks_uri": host.URL + "/weak"}, asKey(w.key)).is(200)
		published.Store(new(fields{"keys": []any{weak.publicKey(), s.publicKey()}}))
		s.exchangeBy(weak.sign(nil)).notAuthenticated()
		s.exchangeBy(s.sign(nil)).is(200)
	})
}

// TestKeysThatCannotBeReadAuthenticateNothing: and the answer says nothing of what the host did.
func TestKeysThatCannotBeReadAuthenticateNothing(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect is followed") }))
	t.Cleanup(inside.Close)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirects":
			http.Redirect(w, r, inside.URL, http.StatusFound)
		case "/large":
			for range 100 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/slow":
			select {
			case <-done:
			case <-r.Context().Done():
			}
		default:
			http.Error(w, "a text of the host", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(host.Close)
	t.Cleanup(func() { close(done) })
	api := onMiniredis(t, setup{keySets: jwksfetch.Config{AllowPrivate: true}})
	guarded := onMiniredis(t, setup{})
	refused := func(api *client, url string) {
		t.Helper()
		w := api.newTenant()
		s := w.newSigner("EdDSA")
		if r := w.patch("/v1/agents/"+s.id, fields{"jwks_uri": url}, asKey(w.key)); r.status != 200 {
			r.invalid("jwks_uri")
			return
		}
		s.exchangeBy(s.sign(nil)).is(503).exactly(fields{
			"error": "temporarily_unavailable", "error_description": "the client's keys cannot be read now; nothing was changed",
			"code": "unavailable",
		})
		w.exchange() // others go on
	}
	for _, path := range []string{"/redirects", "/large", "/slow", "/fails"} {
		refused(api, host.URL+path)
	}
	refused(guarded, strings.Replace(host.URL, "http:", "https:", 1)+"/private")
	refused(guarded, "https://localhost:8443/")
	refused(guarded, "https://169.254.169.254/latest/meta-data")
	refused(guarded, host.URL)
}
