package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
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

func (s signer) publicKey() object { return changed(s.key.JWK(), object{"kid": s.kid}) }

// claims are those of a good assertion, with these changed; nil removes one.
func (s signer) claims(changes fields) object {
	now := time.Now().Unix()
	return withoutNil(changed(object{"iss": s.id, "sub": s.id, "aud": issuer, "jti": uuid.NewString(), "iat": now, "exp": now + 60}, changes))
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
	return r.refusedOAuth(401, "invalid_client").has(fields{"error_description": "the client's credentials are not those of a live agent"})
}

func TestAnAgentGetsTokensByAnAssertionThatItSigns(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		now := time.Now().Unix()
		for _, algorithm := range []string{"EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256"} {
			s := w.newSigner(algorithm)
			for name, assertion := range map[string]string{
				"usual":               s.sign(nil),
				"the token endpoint":  s.sign(fields{"aud": issuer + "/oauth2/token"}),
				"an array of one":     s.sign(fields{"aud": []string{issuer}}),
				"ten minutes":         s.sign(fields{"exp": now + 600}),
				"no iat, with nbf":    s.sign(fields{"iat": nil, "nbf": now - 5}),
				"clocks that differ":  s.sign(fields{"iat": now + 20, "exp": now + 615}),
				"a jti of 255 bytes":  s.sign(fields{"jti": strings.Repeat("j", 255)}),
				"without kid":         s.key.Sign(map[string]any{"alg": algorithm, "typ": "JWT"}, s.claims(nil)),
				"with its media type": s.key.Sign(map[string]any{"alg": algorithm, "typ": "client-authentication+jwt"}, s.claims(nil)),
			} {
				wantEqual(t, name, s.exchangeBy(assertion).status, 200)
			}
			granted := s.exchangeBy(s.sign(nil), "client_id", strings.ToUpper(s.id), "scope", "read").is(200).exactly(aGrant("read"))
			w.get("/v1/auth/verify?scope=read", asAgent(granted.text("access_token"))).is(200)
			s.postForm("/oauth2/token", asserted(s.sign(nil), "grant_type", "refresh_token", "refresh_token", granted.text("refresh_token"))).is(200)
		}
	})
}

// Each is the good assertion but for one thing, and none tells which. What is wrong with a JWT itself, internal/token shows.
func TestNearMissesOfAnAssertionAreRefusedAlike(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		s, other, revoked := w.newSigner("ES256"), w.newSigner("ES256"), w.newSigner("ES256")
		now, keyless := time.Now().Unix(), w.newAgent()
		w.post("/v1/agents/"+revoked.id+"/revoke", nil, asKey(w.key)).is(200)
		for name, assertion := range map[string]string{
			"another audience":          s.sign(fields{"aud": "https://other.example"}),
			"the issuer with a slash":   s.sign(fields{"aud": issuer + "/"}),
			"this and another audience": s.sign(fields{"aud": []string{issuer, "https://other.example"}}),
			"both of its own names":     s.sign(fields{"aud": []string{issuer, issuer + "/oauth2/token"}}),
			"no audience":               s.sign(fields{"aud": nil}),
			"expired":                   s.sign(fields{"exp": now - 31, "iat": now - 90}),
			"an exp too far":            s.sign(fields{"exp": now + 1000}),
			"no jti":                    s.sign(fields{"jti": nil}),
			"a jti of 256 bytes":        s.sign(fields{"jti": strings.Repeat("j", 256)}),
			"another iss":               s.sign(fields{"iss": other.id}),
			"another sub":               s.sign(fields{"sub": other.id}),
			"another agent's":           s.sign(fields{"sub": other.id, "iss": other.id}),
			"no sub":                    s.sign(fields{"sub": nil}),
			"no id":                     s.sign(fields{"sub": "signer", "iss": "signer"}),
			"an unknown agent":          s.sign(fields{"sub": uuid.NewString(), "iss": uuid.NewString()}),
			"an agent without keys":     s.sign(fields{"sub": keyless.id, "iss": keyless.id}),
			"a revoked agent":           revoked.sign(nil),
			"altered":                   altered(s.sign(nil)),
			"another key":               other.key.Sign(map[string]any{"alg": "ES256", "kid": s.kid}, s.claims(nil)),
			"the type of tokens":        s.key.Sign(map[string]any{"alg": "ES256", "kid": s.kid, "typ": "at+jwt"}, s.claims(nil)),
			"an access token":           w.exchange().access,
			"nothing of a JWT":          "x",
		} {
			s.exchangeBy(assertion).notAuthenticated()
			if s.postForm("/oauth2/introspect", asserted(assertion, "token", "x")).notAuthenticated(); t.Failed() {
				t.Fatalf("%s is not refused", name)
			}
		}
		s.exchangeBy(s.sign(fields{"aud": issuer + "/oauth2/revoke"})).notAuthenticated()
		for _, body := range []raw{
			asserted(s.sign(nil), "grant_type", "client_credentials", "client_id", other.id),
			asserted(s.sign(nil), "grant_type", "client_credentials", "client_id", "signer"),
			form("client_assertion_type", strings.Replace(assertionType, "jwt", "saml2", 1), "client_assertion", s.sign(nil), "grant_type", "client_credentials"),
		} {
			s.postForm("/oauth2/token", body).notAuthenticated()
		}
		s.exchangeBy(s.sign(nil)).is(200)
	})
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

// At once, too, as redisstore shows.
func TestAnAssertionAuthenticatesOnceAtAllInstances(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		s, there := w.newSigner("EdDSA"), w.another(t)
		once := s.sign(fields{"jti": "the same"})
		s.exchangeBy(once, "scope", "nothing:of:it").refusedOAuth(400, "invalid_scope", lacking("nothing:of:it")) // which uses it up as little as these do
		s.postForm("/oauth2/token", asserted(once, "grant_type", "password")).refusedOAuth(400, "unsupported_grant_type")
		s.postForm("/oauth2/token", asserted(once)).refusedOAuth(400, "invalid_request")
		s.exchangeBy(once).is(200)
		for _, at := range []*client{w.client, there} {
			at.exchangeBy(once).notAuthenticated()
			at.postForm("/oauth2/introspect", asserted(once, "token", "x")).notAuthenticated()
			at.postForm("/oauth2/revoke", asserted(once, "token", "x")).notAuthenticated()
		}
		there.exchangeBy(s.sign(fields{"jti": "the same", "exp": time.Now().Unix() + 300})).notAuthenticated()
		w.newSigner("EdDSA").exchangeBy(s.sign(nil)).is(200)
	})
}

func TestAClientIsAuthenticatedInOneWay(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		s := w.newSigner("EdDSA")
		grant := []string{"grant_type", "client_credentials"}
		for name, r := range map[string]*response{
			"with Basic":         s.postForm("/oauth2/token", asserted(s.sign(nil), grant...), byBasic(w.agent)),
			"with a secret":      s.exchangeBy(s.sign(nil), "client_id", w.agent.id, "client_secret", w.agent.secret),
			"with a token":       s.postForm("/oauth2/token", asserted(s.sign(nil), grant...), asAgent(w.exchange().access)),
			"without the type":   s.postForm("/oauth2/token", form(append(grant, "client_assertion", s.sign(nil))...)),
			"the type alone":     s.postForm("/oauth2/token", form(append(grant, "client_assertion_type", assertionType, "client_id", s.id)...)),
			"two of them":        s.postForm("/oauth2/token", asserted(s.sign(nil), append(grant, "client_assertion", s.sign(nil))...)),
			"an empty assertion": s.postForm("/oauth2/token", asserted("", grant...)),
		} {
			if r.refusedOAuth(400, "invalid_request"); t.Failed() {
				t.Fatal(name)
			}
		}
		s.post("/v1/auth/token", fields{"agent_id": s.id, "secret": ""}).refused(401, "invalid_credentials")
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

func TestASuspensionAndAChangeOfKeysCountAtOnceForAssertions(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		s, there := w.newSigner("EdDSA"), w.another(t)
		next, path := s, "/v1/agents/"+s.id
		next.key, next.kid = prover.New("ES256"), "second"
		there.exchangeBy(s.sign(nil)).is(200)
		w.patch(path, fields{"jwks": fields{"keys": []any{s.publicKey(), next.publicKey()}}}, asKey(w.key)).is(200)
		there.exchangeBy(s.sign(nil)).is(200)
		there.exchangeBy(next.sign(nil)).is(200)
		w.patch(path, fields{"jwks": next.keys()}, asKey(w.key)).is(200)
		there.exchangeBy(s.sign(nil)).notAuthenticated()
		w.post(path+"/suspend", nil, asKey(w.key)).is(200)
		there.exchangeBy(next.sign(nil)).refusedOAuth(400, "unauthorized_client", suspendedAgent)
		there.exchangeBy(altered(next.sign(nil))).notAuthenticated()
		w.post(path+"/resume", nil, asKey(w.key)).is(200)
		there.exchangeBy(next.sign(nil)).is(200)
		w.patch(path, fields{"jwks": nil}, asKey(w.key)).is(200)
		there.exchangeBy(next.sign(nil)).notAuthenticated()
	})
}

// How often they are read, and from what hosts, internal/jwksfetch shows.
func TestAnAgentMayPublishItsKeys(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, ofThisMachine, func(t *testing.T, api *client) {
		w := api.newTenant()
		s, f := w.newSigner("ES256"), newForeignIssuer(t, "", "ES256")
		f.publish(s.publicKey())
		publishes := func(uri string) {
			w.patch("/v1/agents/"+s.id, fields{"jwks_uri": uri}, asKey(w.key)).is(200)
		}
		publishes(f.jwksURI)
		s.exchangeBy(s.sign(nil)).is(200)
		s.exchangeBy(altered(s.sign(nil))).notAuthenticated()
		s.postForm("/oauth2/introspect", asserted(s.sign(nil), "token", "x")).is(200)
		wantEqual(t, "how often the keys were read", f.reads.Load(), 1)
		weak := s
		weak.key, weak.kid = &prover.Key{Algorithm: "RS256", Private: must(rsa.GenerateKey(rand.Reader, 1024))(t)}, "weak"
		f.publish(weak.publicKey(), s.publicKey())
		publishes(f.jwksURI + "/others")
		s.exchangeBy(weak.sign(nil)).notAuthenticated()
		s.exchangeBy(s.sign(nil)).is(200)
	})
}

// The answer says nothing of what the host did.
func TestKeysThatCannotBeReadAuthenticateNothing(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(host.Close)
	for uri, with := range map[string]setup{
		host.URL: ofThisMachine, "https" + strings.TrimPrefix(host.URL, "http") + "/private": {}, "https://169.254.169.254/latest/meta-data": {},
	} {
		w := onMiniredis(t, with).newTenant()
		s := w.newSigner("EdDSA")
		w.patch("/v1/agents/"+s.id, fields{"jwks_uri": uri}, asKey(w.key)).is(200)
		s.exchangeBy(s.sign(nil)).is(503).exactly(fields{
			"error": "temporarily_unavailable", "error_description": "the client's keys cannot be read now; nothing was changed",
			"code": "unavailable",
		})
		w.exchange() // others go on
	}
	w := onMiniredis(t, setup{}).newTenant()
	w.patch("/v1/agents/"+w.agent.id, fields{"jwks_uri": host.URL}, asKey(w.key)).invalid("jwks_uri")
}
