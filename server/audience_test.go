package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
)

const (
	mail, wiki = "https://mail.example/mcp", "https://wiki.example"
	itself     = issuer
)

// grantFor asks for a new family for these resources.
func (w tenant) grantFor(resources ...string) *response {
	w.t.Helper()
	pairs := []string{"grant_type", "client_credentials"}
	for _, resource := range resources {
		pairs = append(pairs, "resource", resource)
	}
	return w.postForm("/oauth2/token", form(pairs...), byBasic(w.agent))
}

// isFor fails the test unless the response has tokens that are for this audience alone, and returns them.
func (r *response) isFor(w tenant, audience ...string) pair {
	r.t.Helper()
	tokens := pairIn(r.is(200))
	var want any = audience[0]
	if len(audience) > 1 {
		want = list(audience...)
	}
	_, claims := verify(r.t, w.client, tokens.access)
	if found := differences(claims, claims.with(fields{"aud": want, "client_id": w.agent.id})); found != "" {
		r.t.Errorf("%s: claims: %s", r.what, found)
	}
	for _, text := range []string{tokens.access, tokens.refresh} {
		described := w.post("/v1/auth/introspect", fields{"token": text}, asKey(w.key)).is(200).object()
		if found := differences(described, described.with(fields{"active": true, "aud": want})); found != "" && text == tokens.access {
			r.t.Errorf("%s: introspection: %s", r.what, found)
		}
	}
	return tokens
}

func TestATokenIsForTheResourcesThatAreAskedFor(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		exchange := func(resource any) *response {
			return w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": resource})
		}
		asked := func(pairs ...string) *response {
			return w.postForm("/oauth2/token", byPost(w.agent, append(pairs, "grant_type", "client_credentials")...))
		}
		local := "http://[::1]:8080/mcp?tenant=7"
		for _, test := range []struct {
			name string
			got  *response
			want []string
		}{
			{"none", w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}), []string{itself}},
			{"a text", exchange(mail), []string{mail}},
			{"a list", exchange(list(mail)), []string{mail}},
			{"several", exchange(list(wiki, mail, local)), []string{wiki, mail, local}},
			{"one twice", exchange(list(mail, mail)), []string{mail}},
			{"the issuer", exchange(itself), []string{itself}},
			{"the issuer as clients write it", exchange(itself + "/"), []string{itself}},
			{"the issuer and another", exchange(list(itself, mail)), []string{itself, mail}},
			{"OAuth, none", asked(), []string{itself}},
			{"OAuth, one", asked("resource", mail), []string{mail}},
			{"OAuth, several", asked("resource", mail, "resource", wiki), []string{mail, wiki}},
			{"OAuth, audience", asked("audience", mail), []string{mail}},
			{"OAuth, both", asked("audience", mail, "resource", wiki, "audience", itself+"/"), []string{wiki, mail, itself}},
			{"OAuth, both the same", asked("audience", mail, "resource", mail), []string{mail}},
			{"OAuth, an empty one", asked("audience", "", "resource", mail), []string{mail}},
		} {
			t.Run(test.name, func(t *testing.T) {
				at := w.through(w.in(t))
				tokens := test.got.in(t).isFor(at, test.want...)
				tokens = at.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).isFor(at, test.want...)
				at.renew(tokens.refresh).isFor(at, test.want...)
			})
		}
	})
}

func TestARefreshNarrowsItsResourcesAndSpendsNothingForOthers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) { // whose setup has no grace: a spent token would be reuse
		w := api.newTenant()
		there := w.through(api.another(t))
		tokens := w.grantFor(mail, wiki).isFor(w, mail, wiki)
		for _, other := range []string{itself, "https://other.example", "urn:x", "no URI"} {
			for _, refused := range []*response{
				there.postForm("/oauth2/token", byPost(w.agent, "grant_type", "refresh_token", "refresh_token", tokens.refresh, "resource", other)),
				there.postForm("/oauth2/token",
					byPost(w.agent, "grant_type", "refresh_token", "refresh_token", tokens.refresh, "resource", mail, "resource", other)),
			} {
				refused.refusedOAuth(400, "invalid_target")
			}
			code := "invalid_target"
			if other == "no URI" {
				code = "invalid_request"
			}
			w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh, "resource": other}).refused(400, code)
		}
		tokens = w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh, "resource": wiki}).isFor(w, wiki)
		tokens = there.renew(tokens.refresh).isFor(w, mail, wiki)
		tokens = w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh, "resource": list(wiki, mail)}).isFor(w, wiki, mail)
		own := w.exchange()
		w.post("/v1/auth/refresh", fields{"refresh_token": own.refresh, "resource": mail}).refused(400, "invalid_target")
		w.post("/v1/auth/refresh", fields{"refresh_token": own.refresh, "resource": itself}).isFor(w, itself)
		there.renew(tokens.refresh).isFor(w, mail, wiki)
	})
}

func TestAMalformedResourceIsRefusedByName(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		long := "https://a.example/" + strings.Repeat("r", 256-len("https://a.example/"))
		several := func(n int, size int) []string {
			var uris []string
			for i := range n {
				uris = append(uris, fmt.Sprintf("https://%d.example/", i)+strings.Repeat("r", size-len("https://0.example/")))
			}
			return uris
		}
		w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": long}).isFor(w, long)
		w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": list(several(8, 64)...)}).is(200)
		for _, test := range []struct {
			name  string
			given []string
			field string
		}{
			{"a word", []string{"mail"}, "resource"},
			{"a path", []string{"/mcp"}, "resource"},
			{"no scheme", []string{"//mail.example"}, "resource"},
			{"a fragment", []string{mail + "#top"}, "resource"},
			{"an empty fragment", []string{mail + "#"}, "resource"},
			{"plain HTTP elsewhere", []string{"http://mail.example"}, "resource"},
			{"no host", []string{"https:///mcp"}, "resource"},
			{"white space", []string{"https://mail.example/a b"}, "resource"},
			{"a quote", []string{`https://mail.example/"`}, "resource"},
			{"not ASCII", []string{"https://mäil.example"}, "resource"},
			{"too long", []string{long + "r"}, "resource"},
			{"too many", several(9, 30), "resource"},
			{"too long together", several(8, 65), "resource"},
			{"the second", []string{mail, "mail"}, "resource[1]"},
			{"what stands for the issuer in the store", []string{redisstore.Self}, "resource"},
			{"what stands for none in the store", []string{"-"}, "resource"},
		} {
			t.Run(test.name, func(t *testing.T) {
				at := w.through(w.in(t))
				var given any = test.given[0]
				if len(test.given) > 1 {
					given = list(test.given...)
				}
				at.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": given}).invalid(test.field)
				at.post("/v1/auth/refresh", fields{"refresh_token": w.exchange().refresh, "resource": given}).invalid(test.field)
				at.grantFor(test.given...).refusedOAuth(400, "invalid_target")
			})
		}
		for name, given := range map[string]any{"null": nil, "a number": 7, "an empty text": "", "an empty list": list(), "an object": fields{}} {
			t.Run(name, func(t *testing.T) {
				at := w.through(w.in(t))
				at.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": given}).invalid("resource")
			})
		}
		w.post("/v1/auth/revoke", fields{"refresh_token": w.exchange().refresh, "resource": mail}, asAgent(w.exchange().access)).invalid("resource")
	})
}

func TestAnAgentGetsTokensForItsAudiencesOnly(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		allow := func(audiences any) {
			w.patch("/v1/agents/"+w.agent.id, fields{"audiences": audiences}, asKey(w.key)).is(200)
		}
		refused := func(resource string) {
			t.Helper()
			there.grantFor(resource).refusedOAuth(400, "invalid_target")
			r := there.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": resource}).refused(400, "invalid_target")
			if !strings.Contains(string(r.body), `"errors":[{"field":"resource","message":"is not allowed for this token: `+resource+`"}]`) {
				t.Errorf("%s: %s", r.what, r.body)
			}
		}
		early := w.grantFor(mail).isFor(w, mail)
		refused("urn:example:mail")
		allow(list("urn:example:mail", wiki))
		w.grantFor("urn:example:mail").isFor(w, "urn:example:mail")
		refused(mail)
		there.renew(early.refresh).refusedOAuth(400, "invalid_target")
		w.get(verifyPath+"?audience="+url.QueryEscape(mail), asAgent(early.access)).identifies(w, agentScopes...) // issued before
		w.post("/v1/auth/introspect", fields{"token": early.refresh}, asKey(w.key)).is(200).inactive()
		allow(list())
		refused(wiki)
		there.grantFor(itself).isFor(w, itself)
		there.grant().isFor(w, itself)
		allow(nil)
		there.grantFor(wiki).isFor(w, wiki)
		there.renew(early.refresh).isFor(w, mail)
	})
}

func TestRemitsOwnEndpointsWantATokenForItself(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		session, transaction := w.newSession(nil), w.begin(nil)
		foreign, both := w.grantFor(mail).isFor(w, mail), w.grantFor(mail, itself).isFor(w, mail, itself)
		endpoints := slices.Concat(endpointsOfBoth(w, session, transaction), endpointsOfAgents(w, session, transaction), []endpoint{
			rollbackOf(transaction), {"POST", "/v1/auth/revoke", fields{"refresh_token": foreign.refresh}},
		})
		for _, e := range endpoints {
			w.ask(e.method, e.path, e.body, asAgent(foreign.access)).refused(401, "invalid_token")
		}
		w.get("/sessions/"+session, asAgent(both.access)).is(200)
		w.post("/v1/auth/revoke", fields{"refresh_token": foreign.refresh}, asAgent(both.access)).is(200)
		w.get(verifyPath+"?audience="+url.QueryEscape(mail), asAgent(foreign.access)).stopped(401, "invalid_token")
		again := w.grantFor(mail).isFor(w, mail)
		w.postForm("/oauth2/revoke", form("token", again.access), byBasic(w.agent)).is(200)
		w.renew(again.refresh).refusedOAuth(400, "invalid_grant")
	})
}

func TestAProxyNamesTheAudienceThatATokenMustHave(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		id := w.newSession(fields{"max_actions": 100, "max_value_usd": 5})
		tokens := map[string]string{
			"mail": w.grantFor(mail).isFor(w, mail).access, "itself": w.exchange().access,
			"both": w.grantFor(itself, mail).isFor(w, itself, mail).access,
		}
		query := func(audience string) string { return "audience=" + url.QueryEscape(audience) }
		for _, test := range []struct {
			name, query string
			header      option
			passes      []string
		}{
			{"none", "", anonymous, []string{"itself", "both"}},
			{"in the query", query(mail), anonymous, []string{"mail", "both"}},
			{"in a header", "", header("X-Audience", mail), []string{"mail", "both"}},
			{"in both: the query counts", query(mail), header("X-Audience", itself), []string{"mail", "both"}},
			{"the issuer", query(itself), anonymous, []string{"itself", "both"}},
			{"the issuer, as clients write it", query(itself + "/"), anonymous, []string{"itself", "both"}},
			{"another", query(wiki), anonymous, nil},
			{"a part of one", query("https://mail.example"), anonymous, nil},
			{"one in capitals", query(strings.ToUpper(mail)), anonymous, nil},
			{"one with a slash behind", query(mail + "/"), anonymous, nil},
		} {
			for name, access := range tokens {
				for _, r := range []*response{
					w.get(verifyPath+"?"+test.query, asAgent(access), test.header),
					w.get(authorizePath+"?session_id="+id+"&"+test.query, asAgent(access), test.header),
				} {
					if slices.Contains(test.passes, name) {
						r.identifies(w, agentScopes...)
						continue
					}
					r.stopped(401, "invalid_token")
				}
			}
		}
		for _, behind := range []string{verifyPath + "/a", authorizePath + "/a"} { // where the query is the client's
			ask := func(headers ...option) *response {
				return w.ask("PUT", behind+"?"+query(mail), nil, append(headers, asAgent(tokens["mail"]), header("X-Session-Id", id))...)
			}
			ask(header("X-Audience", mail)).identifies(w, agentScopes...)
			ask().stopped(401, "invalid_token")
		}
		for _, bad := range []string{"audience=", query(mail) + "&" + query(wiki), "audiences=" + url.QueryEscape(mail)} {
			w.get(verifyPath+"?"+bad, asAgent(tokens["both"])).stopped(403, "invalid_request")
			w.get(authorizePath+"?session_id="+id+"&"+bad, asAgent(tokens["both"])).stopped(403, "invalid_request")
		}
	})
}

func TestIntrospectionTellsWhetherATokenIsForAnAudience(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		colleague := w.newAgent()
		both, own := w.grantFor(mail, itself).isFor(w, mail, itself), w.exchange()
		for _, test := range []struct {
			tokens   pair
			audience string
			active   bool
		}{
			{both, mail, true}, {both, itself, true}, {both, itself + "/", true}, {both, wiki, false}, {both, mail + "/", false},
			{own, itself, true}, {own, mail, false},
		} {
			for _, text := range []string{test.tokens.access, test.tokens.refresh} {
				for _, r := range []*response{
					w.post("/v1/auth/introspect", fields{"token": text, "audience": test.audience}, asKey(w.key)).is(200),
					w.postForm("/oauth2/introspect", byPost(colleague, "token", text, "audience", test.audience)).is(200),
				} {
					if !test.active {
						r.inactive()
					} else if found := differences(r.object(), r.object().with(fields{"active": true})); found != "" {
						t.Errorf("for %q: %s", test.audience, found)
					}
				}
			}
		}
		w.post("/v1/auth/introspect", fields{"token": own.access, "audience": ""}, asKey(w.key)).invalid("audience")
		w.post("/v1/auth/introspect", fields{"token": own.access, "audience": list(mail)}, asKey(w.key)).invalid("audience")
		w.postForm("/oauth2/introspect", byPost(colleague, "token", own.access, "audience", itself, "audience", mail)).refusedOAuth(400, "invalid_request")
	})
}

func TestATokenThatWouldBeTooLongIsRefused(t *testing.T) {
	t.Parallel()
	with := setup{noKeys: true, store: redisstore.Config{RefreshGrace: time.Minute}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		keys := newKeyringOf(t, longKey(t), token.GenerateRefreshKey())
		api.on.server.SetKeyring(keys)
		w, resources := api.newLongest()
		w.grantFor(resources...).refusedOAuth(400, "invalid_target")
		w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": list(resources...)}).refused(400, "invalid_target")
		text := pairIn(w.grantFor(resources[0]).is(200)).access
		if access, err := keys.VerifyAccess(text, time.Now()); err != nil || access.Agent != uuid.MustParse(w.agent.id) {
			t.Errorf("%+v, %v", access, err)
		}
	})
}

// A token that was granted before the signing key became longer: the refusal is no reuse, however late the client tries again.
func TestARefreshWhoseTokenWouldBeTooLongSpendsNothing(t *testing.T) {
	t.Parallel()
	with := setup{noKeys: true, store: redisstore.Config{RefreshGrace: time.Millisecond}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		refresh := token.GenerateRefreshKey()
		api.on.server.SetKeyring(newKeyringOf(t, must(token.GenerateSigningKey(token.Ed25519))(t), refresh))
		w, resources := api.newLongest()
		h := w.holding("ES256")
		granted := pairIn(w.grantFor(resources...).is(200)).refresh
		bound := pairIn(h.postForm("/oauth2/token", form("grant_type", "client_credentials", "resource", resources[0], "resource", resources[1],
			"resource", resources[2], "resource", resources[3], "resource", resources[4], "resource", resources[5], "resource", resources[6]),
			byBasic(w.agent), withProof(h.key.Prove(h.proof("POST", "/oauth2/token")))).is(200)).refresh
		spent := granted
		granted = pairIn(w.renew(spent).is(200)).refresh

		api.on.server.SetKeyring(newKeyringOf(t, longKey(t), refresh))
		for range 2 {
			w.renew(granted).refusedOAuth(400, "invalid_target")
			w.post("/v1/auth/refresh", fields{"refresh_token": granted}).refused(400, "invalid_target")
			w.renew(bound).refusedOAuth(400, "invalid_grant") // without its key
		}
		granted = pairIn(w.renew(granted, "scope:0001").is(200)).refresh
		granted = pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": granted, "resource": resources[0]}).is(200)).refresh
		w.renew(granted, "other").refusedOAuth(400, "invalid_scope", lacking("other"))
		w.renew(spent).refusedOAuth(400, "invalid_grant")
		w.renew(granted, "scope:0001").refusedOAuth(400, "invalid_grant") // the reuse has ended the family
	})
}

// Each exchange adds an actor to the token.
func TestADelegatedTokenThatWouldBeTooLongIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, setup{noKeys: true}, func(t *testing.T, api *client) {
		api.on.server.SetKeyring(newKeyringOf(t, longKey(t), token.GenerateRefreshKey()))
		d := delegation{tenant: api.newTenant()}
		scopes := []string{"sessions:delegate"}
		for i := range 58 {
			scopes = append(scopes, fmt.Sprintf("scope:%04d", i))
		}
		d.agent = d.newAgentWith(scopes...)
		held, above := d.exchange().access, d.newSession(fields{"max_actions": 1 << 20, "max_value_usd": 1 << 20, "max_lease_seconds": 60})
		for depth := 2; depth <= 8; depth++ {
			above = d.childOf(held, above, d.agent.id)
			next := d.exchangeToken(held, above)
			if next.status == 200 {
				held = next.text("access_token")
				continue
			}
			next.refusedOAuth(400, "invalid_scope")
			d.exchangeToken(held, above, "scope", "sessions:delegate").is(200)
			return
		}
		t.Error("no token was too long")
	})
}

// newLongest is newTenant with an agent whose tokens are as long as any, and the resources that they may be for.
func (c *client) newLongest() (w tenant, resources []string) {
	c.t.Helper()
	w = c.newTenant()
	var scopes []string
	for i := range 60 {
		scopes = append(scopes, fmt.Sprintf("scope:%04d", i))
	}
	for i := range 8 {
		resources = append(resources, fmt.Sprintf("https://%d.example/", i)+strings.Repeat("r", 46))
	}
	w.agent = w.newAgentWith(scopes...)
	return w, resources
}

// longKey is a signing key that makes longer tokens than others, in PEM.
func longKey(t *testing.T) []byte {
	t.Helper()
	der := must(x509.MarshalPKCS8PrivateKey(must(rsa.GenerateKey(rand.Reader, 4096))(t)))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// newKeyringOf is newKeyring with another signing key and token key, and the longest issuer.
func newKeyringOf(t *testing.T, text, refreshText []byte) *token.Keyring {
	t.Helper()
	signing := must(token.ParseSigningKey(text))(t)
	refresh := must(token.ParseRefreshKey(refreshText))(t)
	return must(token.NewKeyring("https://"+strings.Repeat("i", 92), []*token.SigningKey{signing}, []*token.RefreshKey{refresh}))(t)
}
