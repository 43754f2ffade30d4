package server_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
)

// form is a form-encoded body: names and values in turn, and a name may come again.
func form(pairs ...string) raw {
	var encoded []string
	for i := 0; i < len(pairs); i += 2 {
		encoded = append(encoded, url.QueryEscape(pairs[i])+"="+url.QueryEscape(pairs[i+1]))
	}
	return raw(strings.Join(encoded, "&"))
}

// postForm sends a form to an OAuth endpoint, whose responses are JSON with no-store.
func (c *client) postForm(path string, body raw, options ...option) *response {
	c.t.Helper()
	formType := header("Content-Type", "application/x-www-form-urlencoded")
	r := c.post(path, body, append([]option{formType}, options...)...)
	if len(r.body) > 0 && r.header.Get("Content-Type") != "application/json" {
		c.t.Errorf("%s: Content-Type %q", r.what, r.header.Get("Content-Type"))
	}
	if r.header.Get("Cache-Control") != "no-store" || r.header.Get("Pragma") != "no-cache" {
		c.t.Errorf("%s: Cache-Control %q, Pragma %q", r.what, r.header.Get("Cache-Control"), r.header.Get("Pragma"))
	}
	return r
}

func byBasic(a agent) option { return basic(a.id + ":" + a.secret) }

func basic(credentials string) option {
	return header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(credentials)))
}

// byPost adds the client's credentials to a form.
func byPost(a agent, pairs ...string) raw {
	return form(append(pairs, "client_id", a.id, "client_secret", a.secret)...)
}

// refusedOAuth fails the test unless the answer is an error in the form of RFC 6749 §5.2, with what the service says beside it.
func (r *response) refusedOAuth(status int, code string, cause ...fields) *response {
	r.t.Helper()
	want := fields{"error": code, "error_description": someText}
	for _, members := range cause {
		maps.Copy(want, members)
	}
	r.is(status).exactly(want)
	challenge := ""
	if status == http.StatusUnauthorized {
		challenge = `Basic realm="remit"`
	}
	wantEqual(r.t, r.what+": WWW-Authenticate", r.header.Get("WWW-Authenticate"), challenge)
	return r
}

// own is the service's own code beside an OAuth error.
func own(code string) fields { return fields{"code": code} }

// lacking is own for a scope that is not held; "" is none.
func lacking(scope string) fields {
	if scope == "" {
		return nil
	}
	return fields{"code": "insufficient_scope", "required_scope": scope}
}

var (
	suspendedAgent   = fields{"code": "agent_suspended", "suspended_at": aboutNow}
	suspendedSession = fields{"code": "session_suspended", "suspended_at": aboutNow}
)

// grant asks for a new family, with all scopes or these.
func (w tenant) grant(scope ...string) *response {
	w.t.Helper()
	pairs := []string{"grant_type", "client_credentials"}
	if len(scope) > 0 {
		pairs = append(pairs, "scope", strings.Join(scope, " "))
	}
	return w.postForm("/oauth2/token", form(pairs...), byBasic(w.agent))
}

// renew spends a refresh token, with all scopes or these.
func (w tenant) renew(refresh string, scope ...string) *response {
	w.t.Helper()
	return w.postForm("/oauth2/token",
		form("grant_type", "refresh_token", "refresh_token", refresh, "scope", strings.Join(scope, " ")), byBasic(w.agent))
}

// aGrant is an answer of the token endpoint that grants these scopes.
func aGrant(scope string) fields {
	return fields{"access_token": anAccessToken, "refresh_token": aRefreshToken, "token_type": "Bearer",
		"expires_in": 3600, "scope": scope}
}

// granted fails the test unless the answer grants exactly these scopes, in words and in the access token.
func (r *response) granted(c *client, scopes ...string) pair {
	r.t.Helper()
	r.is(200).exactly(aGrant(strings.Join(scopes, " ")))
	_, claims := verify(r.t, c, r.text("access_token"))
	wantFields(r.t, r.what+": the access token", fields{"scopes": claims["scopes"]}, fields{"scopes": list(scopes...)})
	return pairIn(r)
}

func TestOAuthGrantsATokenPairToAClientByBasicAndByPost(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		grant, byBasic := []string{"grant_type", "client_credentials"}, byBasic(w.agent)
		escape := strings.NewReplacer("-", "%2D", "_", "%5F", "r", "%72").Replace
		lower := func(h http.Header) {
			byBasic(h)
			h.Set("Authorization", strings.Replace(h.Get("Authorization"), "Basic", "basic", 1))
		}
		for _, r := range []*response{
			w.postForm("/oauth2/token", form(grant...), byBasic), w.postForm("/oauth2/token", form(grant...), lower),
			w.postForm("/oauth2/token", form(grant...), basic(escape(w.agent.id)+":"+escape(w.agent.secret))),
			w.postForm("/oauth2/token", form(append(grant, "client_id", w.agent.id)...), byBasic),
			w.postForm("/oauth2/token", form(append(grant, "client_secret", "")...), byBasic),
			w.postForm("/oauth2/token", byPost(w.agent, grant...)),
			w.postForm("/oauth2/token", byPost(agent{strings.ToUpper(w.agent.id), w.agent.secret}, grant...)),
			w.postForm("/oauth2/token", form(append(grant, "nonce", "x", "realm", "https://x")...), byBasic),
			w.postForm("/oauth2/token", form(append(grant, "resource", "", "audience", "", "resource", "", "scope", "")...), byBasic),
		} {
			tokens := r.granted(w.client, agentScopes...)
			w.get("/sessions", asAgent(tokens.access)).is(200)
			w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
		}
	})
}

// What a scope narrows, redisstore shows.
func TestOAuthGrantsTheScopesThatAreAskedForAndHeld(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) { // whose setup has no grace: a spent token would be reuse
		w.grant("write", "read").granted(w.client, "write", "read")
		tokens := w.renew(w.grant().granted(w.client, agentScopes...).refresh, "read").granted(w.client, "read")
		w.renew(tokens.refresh).granted(w.client, agentScopes...)
		narrowed := w.grant("read").granted(w.client, "read")
		// The other face spends the same tokens, and must not widen them.
		narrowed = pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": narrowed.refresh}).is(200))
		w.get("/v1/auth/verify?scope=write", asAgent(narrowed.access)).refused(403, "insufficient_scope")
		for scope, lacks := range map[string]string{
			"write": "write", "read write": "write", "rea": "rea", "read read": "", `a"b`: "", `a\b`: "", "\x01": "", "é": "", "\x7f": "",
		} {
			w.renew(narrowed.refresh, scope).refusedOAuth(400, "invalid_scope", lacking(lacks))
		}
		for scope, lacks := range map[string]string{"admin": "admin", "read admin": "admin", "read read": "", strings.Repeat("x", 601): ""} {
			w.grant(scope).refusedOAuth(400, "invalid_scope", lacking(lacks))
		}
		w.renew(narrowed.refresh).granted(w.client, "read")
	})
}

func TestATokenThatIsNoneOfTheClientsIsNotRefreshedAndHarmsNothing(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		stranger := w.newTenant()
		colleague, mine := w, w.exchange()
		colleague.agent = w.newAgent()
		for _, other := range []tenant{colleague, stranger} {
			theirs := other.exchange()
			refused := w.renew(theirs.refresh).refusedOAuth(400, "invalid_grant")
			for _, garbage := range []string{"x", "rmr_x", mine.access, otherByte(mine.refresh, 10)} {
				wantSameAnswer(t, refused, w.renew(garbage))
			}
			other.renew(theirs.refresh).granted(w.client, agentScopes...)
		}
		for _, garbage := range []string{"x", "rmr_x", otherByte(mine.refresh, 10), mine.access + "A", w.agent.secret, w.expired(t)} {
			w.postForm("/oauth2/revoke", form("token", garbage), byBasic(w.agent)).is(200)
		}
		w.get("/sessions", asAgent(mine.access)).is(200)
		w.renew(mine.refresh).granted(w.client, agentScopes...)
	})
}

func TestOAuthRefusalsOfClientsAreIdentical(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		revoked, colleague, tokens := w.newAgent(), w.newAgent(), w.exchange()
		w.delete("/v1/agents/"+revoked.id, asKey(w.key)).is(200)
		wrong, unknown := agent{w.agent.id, token.NewAgentSecret()}, agent{uuid.NewString(), w.agent.secret}
		refused := w.postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(wrong)).refusedOAuth(401, "invalid_client")
		for _, by := range []struct {
			as   option
			more []string // in the form
		}{
			{byBasic(unknown), nil}, {byBasic(revoked), nil}, {byBasic(agent{w.agent.id, colleague.secret}), nil}, {basic(w.org + ":" + w.key), nil},
			{basic("scout:" + w.agent.secret), nil}, {basic(w.agent.id + ":hunter2"), nil}, {basic(w.agent.id + ":"), nil}, {basic(w.agent.id), nil},
			{basic(w.agent.id + ":" + w.agent.secret + "%2"), nil}, {header("Authorization", "Basic !"), nil}, {header("Authorization", "Basic"), nil},
			{asAgent(tokens.access), nil}, {anonymous, nil}, {anonymous, []string{"client_id", w.agent.id}},
			{byBasic(w.agent), []string{"client_id", colleague.id}},
			{anonymous, []string{"client_id", wrong.id, "client_secret", wrong.secret}},
			{anonymous, []string{"client_id", unknown.id, "client_secret", unknown.secret}},
		} {
			for _, ask := range []*response{
				w.postForm("/oauth2/token", form(append(by.more, "grant_type", "client_credentials")...), by.as),
				w.postForm("/oauth2/token", form(append(by.more, "grant_type", "refresh_token", "refresh_token", tokens.refresh)...), by.as),
				w.postForm("/oauth2/introspect", form(append(by.more, "token", tokens.access)...), by.as),
				w.postForm("/oauth2/revoke", form(append(by.more, "token", tokens.access)...), by.as),
			} {
				if wantSameAnswer(t, refused, ask.refusedOAuth(401, "invalid_client")); t.Failed() {
					t.Fatalf("with %q in the form", by.more)
				}
			}
		}
		w.renew(tokens.refresh).granted(w.client, agentScopes...)
	})
}

func TestOAuthRefusesMalformedRequests(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		as, grant := byBasic(w.agent), form("grant_type", "client_credentials")
		for path, bodies := range map[string][]raw{
			"/oauth2/token": {
				"", form("scope", "read"), form("grant_type", ""), form("grant_type", "refresh_token"), grant + "&scope=read&scope=write", grant + "&x=1&x=2",
				grant + "&x=%zz", grant + ";x=1", byPost(w.agent, "grant_type", "client_credentials"), // beside Basic
			},
			"/oauth2/introspect": {"", form("token", ""), form("token", "a", "token", "b")},
			"/oauth2/revoke":     {"", byPost(w.agent, "token", "a")},
		} {
			for _, body := range bodies {
				if w.postForm(path, body, as).refusedOAuth(400, "invalid_request"); t.Failed() {
					t.Fatalf("with %q", body)
				}
			}
		}
		for _, body := range []raw{form("grant_type", exchangeGrant, "grant_type", exchangeGrant), form("grant_type", exchangeGrant) + "&x=%zz"} {
			w.postForm("/oauth2/token", body).refusedOAuth(400, "invalid_request")
		}
		w.postForm("/oauth2/token", grant, both(as, header("Content-Type", "text/plain"))).refusedOAuth(400, "invalid_request")
		for _, other := range []string{"password", "CLIENT_CREDENTIALS"} {
			w.postForm("/oauth2/token", form("grant_type", other), as).refusedOAuth(400, "unsupported_grant_type")
		}
		r := w.get("/oauth2/authorize?response_type=code&redirect_uri=https://x.example").refusedOAuth(400, "unsupported_response_type")
		wantEqual(t, "Location", r.header.Get("Location"), "")
	})
}

func TestOAuthSaysInItsOwnWordsThatTheServiceCannotAnswerNow(t *testing.T) {
	t.Parallel()
	starting := onMiniredis(t, setup{noKeys: true}).newTenant()
	down := onMiniredis(t, setup{}).newTenant()
	tokens := down.exchange()
	down.on.mini.Close()
	for name, r := range map[string]*response{
		"without keys":             starting.grant(),
		"a grant without Redis":    down.grant(),
		"a refresh without Redis":  down.renew(tokens.refresh),
		"a question without Redis": down.postForm("/oauth2/introspect", form("token", tokens.access), byBasic(down.agent)),
		"an end without Redis":     down.postForm("/oauth2/revoke", form("token", tokens.access), byBasic(down.agent)),
	} {
		if r.refusedOAuth(503, "temporarily_unavailable", own("unavailable")); r.header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After %q", name, r.header.Get("Retry-After"))
		}
	}
}

// expired is an access token of the tenant's agent that was good until now.
func (w tenant) expired(t *testing.T) string {
	t.Helper()
	return must(w.on.keyring.SignAccess(token.Access{
		Agent: uuid.MustParse(w.agent.id), Organization: uuid.MustParse(w.org), Family: uuid.New(), Scopes: agentScopes,
		Issued: time.Now().Add(-token.AccessLifetime - time.Second), Client: uuid.MustParse(w.agent.id), Audience: []string{w.on.keyring.Issuer()},
	}))(t)
}

func TestMetadataPointsClientsToWhatLiesBelowTheIssuer(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		methods := list("client_secret_basic", "client_secret_post", "private_key_jwt")
		algorithms := list("EdDSA", "ES256", "ES384", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "Ed25519")
		r := api.get("/.well-known/oauth-authorization-server").is(200)
		if other := api.get("/.well-known/openid-configuration").is(200); string(other.body) != string(r.body) {
			t.Errorf("for OpenID Connect Discovery: %s", other.body)
		}
		document := r.exactly(fields{
			"issuer":                                        issuer,
			"authorization_endpoint":                        issuer + "/oauth2/authorize",
			"token_endpoint":                                issuer + "/oauth2/token",
			"revocation_endpoint":                           issuer + "/oauth2/revoke",
			"introspection_endpoint":                        issuer + "/oauth2/introspect",
			"jwks_uri":                                      issuer + "/.well-known/jwks.json",
			"grant_types_supported":                         list("client_credentials", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer", exchangeGrant),
			"response_types_supported":                      list(),
			"token_endpoint_auth_methods_supported":         list("client_secret_basic", "client_secret_post", "private_key_jwt", "none"),
			"revocation_endpoint_auth_methods_supported":    methods,
			"introspection_endpoint_auth_methods_supported": methods,
			"subject_types_supported":                       list("public"),
			"id_token_signing_alg_values_supported":         list("EdDSA"),
			"dpop_signing_alg_values_supported":             list("ES256", "ES384", "EdDSA", "RS256", "PS256", "Ed25519"),

			"token_endpoint_auth_signing_alg_values_supported":         algorithms,
			"revocation_endpoint_auth_signing_alg_values_supported":    algorithms,
			"introspection_endpoint_auth_signing_alg_values_supported": algorithms,
		}).object()
		for member, value := range document {
			text, _ := value.(string)
			path, isURL := strings.CutPrefix(text, issuer+"/")
			if !isURL {
				continue
			}
			if got := api.get("/" + path); got.status == 404 {
				t.Errorf("%s is nowhere: %s", member, got.body)
			}
		}
		api.get("/.well-known/oauth-protected-resource").is(200).exactly(fields{
			"resource": issuer, "authorization_servers": list(issuer), "jwks_uri": issuer + "/.well-known/jwks.json",
			"bearer_methods_supported": list("header"), "dpop_signing_alg_values_supported": list("ES256", "ES384", "EdDSA", "RS256", "PS256", "Ed25519"),
			"resource_documentation": issuer + "/docs",
		})
		api.get("/.well-known/oauth-protected-resource/mcp").refused(404, "not_found")
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/.well-known/jwks.json",
			"/.well-known/oauth-protected-resource"} {
			for _, method := range []string{"GET", "HEAD"} {
				wantEqual(t, fmt.Sprintf("%s %s: Cache-Control", method, path), api.ask(method, path, nil).is(200).header.Get("Cache-Control"), "public, max-age=300")
			}
		}
	})
}
