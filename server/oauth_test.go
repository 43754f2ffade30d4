package server_test

import (
	"context"
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server"
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
	if got := r.header.Get("WWW-Authenticate"); got != challenge {
		r.t.Errorf("%s: WWW-Authenticate %q, want %q", r.what, got, challenge)
	}
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
	if found := differences(fields{"scopes": claims["scopes"]}, fields{"scopes": list(scopes...)}); found != "" {
		r.t.Errorf("%s: the access token: %s", r.what, found)
	}
	return pairIn(r)
}

func TestOAuthGrantsATokenPairToAClientByBasicAndByPost(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		escape := strings.NewReplacer("-", "%2D", "_", "%5F", "r", "%72").Replace
		escaped := basic(escape(w.agent.id) + ":" + escape(w.agent.secret))
		for _, test := range []struct {
			name string
			body raw
			as   option
		}{
			{"Basic", form("grant_type", "client_credentials"), byBasic(w.agent)},
			{"Basic in lower case", form("grant_type", "client_credentials"), func(h http.Header) {
				byBasic(w.agent)(h)
				h.Set("Authorization", strings.Replace(h.Get("Authorization"), "Basic", "basic", 1))
			}},
			{"Basic with both halves percent-encoded", form("grant_type", "client_credentials"), escaped},
			{"Basic, and the same client_id", form("grant_type", "client_credentials", "client_id", w.agent.id), byBasic(w.agent)},
			{"Basic, and an empty client_secret", form("grant_type", "client_credentials", "client_secret", ""), byBasic(w.agent)},
			{"post", byPost(w.agent, "grant_type", "client_credentials"), anonymous},
			{"post of an id in upper case", byPost(agent{strings.ToUpper(w.agent.id), w.agent.secret},
				"grant_type", "client_credentials"), anonymous},
			{"a charset", form("grant_type", "client_credentials"), both(byBasic(w.agent),
				header("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"))},
			{"a media type in upper case", form("grant_type", "client_credentials"), both(byBasic(w.agent),
				header("Content-Type", "Application/X-WWW-Form-Urlencoded"))},
			{"unknown parameters", form("grant_type", "client_credentials", "nonce", "x", "realm", "https://x"), byBasic(w.agent)},
			{"empty resources", form("grant_type", "client_credentials", "resource", "", "audience", "", "resource", ""), byBasic(w.agent)},
			{"an empty scope", form("grant_type", "client_credentials", "scope", ""), byBasic(w.agent)},
		} {
			t.Run(test.name, func(t *testing.T) {
				c := w.in(t)
				tokens := c.postForm("/oauth2/token", test.body, test.as).granted(c, agentScopes...)
				c.get("/sessions", asAgent(tokens.access)).is(200)
				c.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
			})
		}
	})
}

func TestOAuthScopeNarrowsTheWholeFamily(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		session := w.newSession(nil)
		tokens := w.grant("write").granted(w.client, "write")
		for range 3 {
			tokens = there.renew(tokens.refresh).granted(w.client, "write")
			w.post("/sessions/"+session+"/actions", fields{"scope": "write"}, asAgent(tokens.access)).is(200)
			w.post("/sessions/"+session+"/actions", fields{"scope": "read"}, asAgent(tokens.access)).refused(403, "insufficient_scope")
		}
		// The other face spends the same tokens, and must not widen them.
		tokens = pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200))
		w.get("/v1/auth/verify?scope=read", asAgent(tokens.access)).refused(403, "insufficient_scope")
		w.renew(tokens.refresh, "read").refusedOAuth(400, "invalid_scope", lacking("read"))
		w.grant("write", "read").granted(w.client, "write", "read")
		w.grant().granted(w.client, agentScopes...)
	})
}

func TestOAuthScopeOfARefreshNarrowsThatAccessTokenAlone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		tokens := w.grant().granted(w.client, agentScopes...)
		tokens = w.renew(tokens.refresh, "read").granted(w.client, "read")
		tokens = w.renew(tokens.refresh, "write").granted(w.client, "write")
		w.renew(tokens.refresh).granted(w.client, agentScopes...)
	})
}

func TestOAuthScopeThatIsNotHeldSpendsNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) { // whose setup has no grace: a spent token would be reuse
		w := api.newTenant()
		narrowed := w.grant("read").granted(w.client, "read")
		for scope, lacks := range map[string]string{
			"write": "write", "admin": "admin", "read write": "write", "rea": "rea", "READ": "READ",
			"read read": "", `a"b`: "", `a\b`: "", "\x01": "", "é": "",
		} {
			w.renew(narrowed.refresh, scope).refusedOAuth(400, "invalid_scope", lacking(lacks))
		}
		w.renew(narrowed.refresh).granted(w.client, "read")
		for scope, lacks := range map[string]string{
			"admin": "admin", "read admin": "admin", "writ": "writ", `a"b`: "", "read read": "", "\x7f": "", strings.Repeat("x", 601): "",
		} {
			w.grant(scope).refusedOAuth(400, "invalid_scope", lacking(lacks))
		}
	})
}

func TestOAuthRefreshOfATokenThatIsNotTheClientsIsInvalidGrant(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, stranger := api.newTenant(), api.newTenant()
		colleague := w
		colleague.agent = w.newAgent()
		mine := w.exchange()
		for _, other := range []tenant{colleague, stranger} {
			theirs := other.exchange()
			refused := w.renew(theirs.refresh).refusedOAuth(400, "invalid_grant")
			for _, garbage := range []string{"x", "rmr_x", mine.access, misspelt(mine.refresh)[0]} {
				wantSameAnswer(t, refused, w.renew(garbage))
			}
			other.renew(theirs.refresh).granted(w.client, agentScopes...)
		}
		w.renew(mine.refresh).granted(w.client, agentScopes...)
	})
}

func TestOAuthRefusalsOfClientsAreIdentical(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		revoked, colleague := w.newAgent(), w.newAgent()
		w.delete("/v1/agents/"+revoked.id, asKey(w.key)).is(200)
		tokens := w.exchange()
		grant := []string{"grant_type", "client_credentials"}
		wrong := agent{w.agent.id, token.NewAgentSecret()}
		refused := w.postForm("/oauth2/token", form(grant...), byBasic(wrong)).refusedOAuth(401, "invalid_client")
		for name, test := range map[string]struct {
			as   option
			body func(pairs ...string) raw
		}{
			"wrong secret by post":            {anonymous, func(pairs ...string) raw { return byPost(wrong, pairs...) }},
			"unknown client":                  {byBasic(agent{uuid.NewString(), w.agent.secret}), form},
			"unknown client by post":          {anonymous, func(pairs ...string) raw { return byPost(agent{uuid.NewString(), w.agent.secret}, pairs...) }},
			"revoked agent":                   {byBasic(revoked), form},
			"another's secret":                {byBasic(agent{w.agent.id, colleague.secret}), form},
			"an organization":                 {basic(w.org + ":" + w.key), form},
			"an id that is none":              {basic("scout:" + w.agent.secret), form},
			"a secret that none can have":     {basic(w.agent.id + ":hunter2"), form},
			"empty secret":                    {basic(w.agent.id + ":"), form},
			"client_id alone":                 {anonymous, func(pairs ...string) raw { return form(append(pairs, "client_id", w.agent.id)...) }},
			"no credentials":                  {anonymous, form},
			"Basic without a colon":           {basic(w.agent.id), form},
			"Basic that is not base64":        {header("Authorization", "Basic !"), form},
			"Basic of nothing":                {header("Authorization", "Basic"), form},
			"Basic with a broken escape":      {basic(w.agent.id + ":" + w.agent.secret + "%2"), form},
			"another scheme":                  {asAgent(tokens.access), form},
			"client_id that is not the Basic": {byBasic(w.agent), func(pairs ...string) raw { return form(append(pairs, "client_id", colleague.id)...) }},
		} {
			t.Run(name, func(t *testing.T) {
				c := w.in(t)
				for _, ask := range []*response{
					c.postForm("/oauth2/token", test.body(grant...), test.as),
					c.postForm("/oauth2/token", test.body("grant_type", "refresh_token", "refresh_token", tokens.refresh), test.as),
					c.postForm("/oauth2/introspect", test.body("token", tokens.access), test.as),
					c.postForm("/oauth2/revoke", test.body("token", tokens.access), test.as),
				} {
					wantSameAnswer(t, refused, ask.refusedOAuth(401, "invalid_client"))
				}
			})
		}
		w.renew(tokens.refresh).granted(w.client, agentScopes...)
	})
}

func TestOAuthRefusesMalformedRequests(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		as, nothing := byBasic(w.agent), raw("")
		grant := form("grant_type", "client_credentials")
		for name, test := range map[string]struct {
			path, code string
			body       raw
			as         option
		}{
			"credentials by Basic and by post":  {"token", "invalid_request", byPost(w.agent, "grant_type", "client_credentials"), as},
			"no grant_type":                     {"token", "invalid_request", form("scope", "read"), as},
			"an empty grant_type":               {"token", "invalid_request", form("grant_type", ""), as},
			"an empty body":                     {"token", "invalid_request", nothing, as},
			"a grant_type that is not served":   {"token", "unsupported_grant_type", form("grant_type", "password"), as},
			"grant_type in upper case":          {"token", "unsupported_grant_type", form("grant_type", "CLIENT_CREDENTIALS"), as},
			"refresh without a token":           {"token", "invalid_request", form("grant_type", "refresh_token"), as},
			"a repeated parameter":              {"token", "invalid_request", grant + "&scope=read&scope=write", as},
			"a parameter repeated alike":        {"token", "invalid_request", grant + "&" + grant, as},
			"a repeated parameter, unknown":     {"token", "invalid_request", grant + "&x=1&x=2", as},
			"a token exchange twice":            {"token", "invalid_request", form("grant_type", exchangeGrant, "grant_type", exchangeGrant), anonymous},
			"a token exchange and a broken %":   {"token", "invalid_request", form("grant_type", exchangeGrant) + "&x=%zz", anonymous},
			"a broken escape":                   {"token", "invalid_request", grant + "&x=%zz", as},
			"a semicolon between parameters":    {"token", "invalid_request", grant + ";x=1", as},
			"JSON":                              {"token", "invalid_request", `{"grant_type":"client_credentials"}`, both(as, header("Content-Type", "application/json"))},
			"a form of another media type":      {"token", "invalid_request", grant, both(as, header("Content-Type", "text/plain"))},
			"a form in parts":                   {"token", "invalid_request", grant, both(as, header("Content-Type", "multipart/form-data; boundary=x"))},
			"introspection without a token":     {"introspect", "invalid_request", form("token_type_hint", "access_token"), as},
			"introspection of an empty token":   {"introspect", "invalid_request", form("token", ""), as},
			"introspection of two tokens":       {"introspect", "invalid_request", form("token", "a", "token", "b"), as},
			"introspection of JSON":             {"introspect", "invalid_request", `{"token":"x"}`, both(as, header("Content-Type", "application/json"))},
			"revocation without a token":        {"revoke", "invalid_request", nothing, as},
			"revocation of two tokens":          {"revoke", "invalid_request", form("token", "a", "token", "b"), as},
			"revocation with credentials twice": {"revoke", "invalid_request", byPost(w.agent, "token", "a"), as},
		} {
			t.Run(name, func(t *testing.T) {
				w.in(t).postForm("/oauth2/"+test.path, test.body, test.as).refusedOAuth(400, test.code)
			})
		}
	})
}

func TestOAuthRevokeEndsTheFamilyOnTheOtherInstanceAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		for name, which := range map[string]func(pair) string{
			"by the refresh token": func(p pair) string { return p.refresh },
			"by the access token":  func(p pair) string { return p.access },
		} {
			t.Run(name, func(t *testing.T) {
				here, there := w.through(w.in(t)), there.through(there.in(t))
				bystander, tokens := here.exchange(), here.exchange()
				for _, at := range []tenant{here, there, here} {
					for _, body := range []raw{form("token", which(tokens)), form("token", which(tokens), "token_type_hint", "x")} {
						if r := at.postForm("/oauth2/revoke", body, byBasic(w.agent)).is(200); len(r.body) != 0 {
							t.Errorf("a body: %s", r.body)
						}
					}
					at.postForm("/oauth2/revoke", byPost(w.agent, "token", which(tokens))).is(200)
				}
				there.get("/sessions", asAgent(tokens.access)).refused(401, "invalid_token")
				there.get("/v1/auth/verify", asAgent(tokens.access)).refused(401, "invalid_token")
				there.renew(tokens.refresh).refusedOAuth(400, "invalid_grant")
				there.get("/sessions", asAgent(bystander.access)).is(200)
				there.renew(bystander.refresh).granted(w.client, agentScopes...)
			})
		}
	})
}

func TestOAuthRevokeOfAMalformedTokenSucceeds(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		tokens := w.exchange()
		for _, garbage := range []string{"x", "rmr_x", misspelt(tokens.refresh)[0], tokens.access + "A", w.agent.secret, w.expired(t)} {
			w.postForm("/oauth2/revoke", form("token", garbage), byBasic(w.agent)).is(200)
		}
		w.get("/sessions", asAgent(tokens.access)).is(200)
		w.renew(tokens.refresh).granted(w.client, agentScopes...)
	})
}

func TestOAuthRevokeOfAnotherClientsTokenIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, stranger := api.newTenant(), api.newTenant()
		for _, theirs := range []pair{w.exchangeFor(w.newAgent()), stranger.exchange()} {
			for _, foreign := range []string{theirs.refresh, theirs.access} {
				w.postForm("/oauth2/revoke", form("token", foreign), byBasic(w.agent)).refusedOAuth(400, "invalid_grant")
			}
			w.get("/sessions", asAgent(theirs.access)).is(200)
			w.post("/v1/auth/refresh", fields{"refresh_token": theirs.refresh}).is(200)
		}
	})
}

func TestOAuthAuthorizeRefusesForNoUserEverAuthorizes(t *testing.T) {
	t.Parallel()
	r := onMiniredis(t, setup{}).get("/oauth2/authorize?response_type=code&redirect_uri=https://x.example")
	r.refusedOAuth(400, "unsupported_response_type")
	if r.header.Get("Location") != "" {
		t.Errorf("redirects to %s", r.header.Get("Location"))
	}
}

func TestOAuthClientsThatFailTooOftenAreRefusedInTheWordsOfOAuth(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for name, path := range map[string]string{"token": "/oauth2/token", "introspect": "/oauth2/introspect", "revoke": "/oauth2/revoke"} {
			t.Run(name, func(t *testing.T) {
				w := api.in(t).newTenant()
				limited := api.in(t).limited(t, server.Limits{FailedAuthPerMinute: 2})
				body := form("grant_type", "client_credentials", "token", "x")
				limited.postForm(path, form("grant_type", "x", "grant_type", "x"), byBasic(w.agent)).is(400) // costs nothing
				for range 2 {
					limited.postForm(path, body, byBasic(w.agent)).is(200) // nor does success
					limited.postForm(path, body, byBasic(agent{w.agent.id, token.NewAgentSecret()})).refusedOAuth(401, "invalid_client")
				}
				limited.postForm(path, body, byBasic(w.agent)).is(200) // a secret that has succeeded always passes
				refused := limited.postForm(path, body, byBasic(agent{w.agent.id, token.NewAgentSecret()})).
					refusedOAuth(429, "temporarily_unavailable", own("rate_limited"))
				if after, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || after < 1 || after > 30 {
					t.Errorf("Retry-After %q", refused.header.Get("Retry-After"))
				}
			})
		}
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

// limited runs a further instance of the service, with limits.
func (c *client) limited(t *testing.T, limits server.Limits) *client {
	t.Helper()
	config := c.on.store
	config.URL, config.Prefix = c.on.redis, c.on.prefix
	store := must(redisstore.Open(config))(t)
	on := &instance{setup: c.on.setup, keyring: c.on.keyring}
	on.server = server.New(server.Config{Store: store, Log: newLog(nil), Limits: limits})
	on.server.SetKeyring(on.keyring)
	server.HoldToDescription(t, on.server)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	on.address = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- on.server.Serve(listener) }()
	t.Cleanup(func() {
		c.http.CloseIdleConnections()
		if err := on.server.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-served
		_ = store.Close()
	})
	return &client{t: t, on: on, http: c.http}
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
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/.well-known/jwks.json"} {
			for _, method := range []string{"GET", "HEAD"} {
				if got := api.ask(method, path, nil).is(200).header.Get("Cache-Control"); got != "public, max-age=300" {
					t.Errorf("%s %s: Cache-Control %q", method, path, got)
				}
			}
		}
	})
}
