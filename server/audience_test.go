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
	wantFields(r.t, r.what+": claims", claims, claims.with(fields{"aud": want, "client_id": w.agent.id}))
	w.post("/v1/auth/introspect", fields{"token": tokens.access}, asKey(w.key)).is(200).has(fields{"active": true, "aud": want})
	return tokens
}

// exchangeWith asks for a pair for these resources.
func (w tenant) exchangeWith(resource any) *response {
	w.t.Helper()
	return w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret, "resource": resource})
}

func TestATokenIsForTheResourcesThatAreAskedFor(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		asked := func(pairs ...string) *response {
			return w.postForm("/oauth2/token", byPost(w.agent, append(pairs, "grant_type", "client_credentials")...))
		}
		local := "http://[::1]:8080/mcp?tenant=7"
		for _, test := range []struct {
			got  *response
			want []string
		}{
			{w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}), []string{itself}},
			{w.exchangeWith(mail), []string{mail}},
			{w.exchangeWith(list(wiki, mail, local)), []string{wiki, mail, local}},
			{w.exchangeWith(list(mail, mail)), []string{mail}},
			{w.exchangeWith(itself + "/"), []string{itself}}, // the issuer as clients write it
			{w.exchangeWith(list(itself, mail)), []string{itself, mail}},
			{asked(), []string{itself}},
			{asked("resource", mail, "resource", wiki), []string{mail, wiki}},
			{asked("audience", mail), []string{mail}},
			{asked("audience", mail, "resource", wiki, "audience", itself+"/"), []string{wiki, mail, itself}},
			{asked("audience", mail, "resource", mail), []string{mail}},
			{asked("audience", "", "resource", mail), []string{mail}},
		} {
			tokens := test.got.isFor(w, test.want...)
			tokens = w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).isFor(w, test.want...)
			w.renew(tokens.refresh).isFor(w, test.want...)
		}
	})
}

// Which a refresh may be for, redisstore shows.
func TestARefreshNarrowsItsResourcesAndSpendsNothingForOthers(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) { // whose setup has no grace: a spent token would be reuse
		tokens := w.grantFor(mail, wiki).isFor(w, mail, wiki)
		refresh := func(resource any) *response {
			return w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh, "resource": resource})
		}
		renew := func(resource string) *response {
			return w.postForm("/oauth2/token", byPost(w.agent, "grant_type", "refresh_token", "refresh_token", tokens.refresh, "resource", resource))
		}
		renew(itself).refusedOAuth(400, "invalid_target")
		refresh(itself).refused(400, "invalid_target")
		tokens = refresh(wiki).isFor(w, wiki)
		tokens = renew(mail).isFor(w, mail)
		refresh(list(wiki, mail)).isFor(w, wiki, mail)
	})
}

func TestAMalformedResourceIsRefusedByName(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		long := "https://a.example/" + strings.Repeat("r", 256-len("https://a.example/"))
		several := func(n int, size int) []string {
			var uris []string
			for i := range n {
				uris = append(uris, fmt.Sprintf("https://%d.example/", i)+strings.Repeat("r", size-len("https://0.example/")))
			}
			return uris
		}
		w.exchangeWith(long).isFor(w, long)
		w.exchangeWith(list(several(8, 64)...)).is(200)
		refresh := w.exchange().refresh
		for _, given := range [][]string{
			{"mail"}, {"/mcp"}, {"//mail.example"}, {mail + "#top"}, {mail + "#"}, {"http://mail.example"}, {"https:///mcp"}, {"https://mail.example/a b"},
			{`https://mail.example/"`}, {"https://mäil.example"}, {long + "r"}, several(9, 30), several(8, 65), {mail, "mail"},
			{redisstore.Self}, {"-"}, // what stands in the store for the issuer, and for none
		} {
			field := map[bool]string{true: "resource[1]", false: "resource"}[len(given) == 2]
			var resource any = given[0]
			if len(given) > 1 {
				resource = list(given...)
			}
			w.exchangeWith(resource).invalid(field)
			w.post("/v1/auth/refresh", fields{"refresh_token": refresh, "resource": resource}).invalid(field)
			w.grantFor(given...).refusedOAuth(400, "invalid_target")
		}
		for _, given := range []any{nil, 7, "", list(), fields{}} {
			w.exchangeWith(given).invalid("resource")
		}
		w.post("/v1/auth/revoke", fields{"refresh_token": refresh, "resource": mail}, asAgent(w.exchange().access)).invalid("resource")
	})
}

// Which these are, redisstore shows.
func TestAnAgentGetsTokensForItsAudiencesOnly(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		early := w.grantFor(mail).isFor(w, mail)
		w.patch("/v1/agents/"+w.agent.id, fields{"audiences": list("urn:example:mail", wiki)}, asKey(w.key)).is(200)
		w.grantFor("urn:example:mail").isFor(w, "urn:example:mail")
		w.grantFor(mail).refusedOAuth(400, "invalid_target")
		r := w.exchangeWith(mail).refused(400, "invalid_target")
		if !strings.Contains(string(r.body), `"errors":[{"field":"resource","message":"is not allowed for this token: `+mail+`"}]`) {
			t.Errorf("%s: %s", r.what, r.body)
		}
		w.renew(early.refresh).refusedOAuth(400, "invalid_target")
		w.get(verifyPath+"?audience="+url.QueryEscape(mail), asAgent(early.access)).identifies(w, agentScopes...) // issued before
		w.post("/v1/auth/introspect", fields{"token": early.refresh}, asKey(w.key)).is(200).inactive()
	})
}

func TestRemitsOwnEndpointsWantATokenForItself(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		session, transaction := w.newSession(nil), w.begin(nil)
		foreign, both := w.grantFor(mail).isFor(w, mail), w.grantFor(mail, itself).isFor(w, mail, itself)
		w.refuses(foreign.access, session, transaction, 401, "invalid_token")
		w.post("/v1/auth/revoke", fields{"refresh_token": foreign.refresh}, asAgent(foreign.access)).refused(401, "invalid_token")
		w.get("/sessions/"+session, asAgent(both.access)).is(200)
		w.post("/v1/auth/revoke", fields{"refresh_token": foreign.refresh}, asAgent(both.access)).is(200)
		w.get(verifyPath+"?audience="+url.QueryEscape(mail), asAgent(foreign.access)).stopped(401, "invalid_token")
		again := w.grantFor(mail).isFor(w, mail)
		w.postForm("/oauth2/revoke", form("token", again.access), byBasic(w.agent)).is(200)
		w.renew(again.refresh).refusedOAuth(400, "invalid_grant")
	})
}

func TestAProxyNamesTheAudienceThatATokenMustHave(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		id := w.newSession(fields{"max_actions": 100, "max_value_usd": 5})
		tokens := map[string]string{
			"mail": w.grantFor(mail).is(200).text("access_token"), "itself": w.exchange().access,
			"both": w.grantFor(itself, mail).is(200).text("access_token"),
		}
		query := func(audience string) string { return "audience=" + url.QueryEscape(audience) }
		for _, test := range []struct {
			query  string
			header option
			passes string
		}{
			{"", anonymous, "itself both"}, {query(mail), anonymous, "mail both"}, {"", header("X-Audience", mail), "mail both"},
			{query(mail), header("X-Audience", itself), "mail both"}, // the query counts
			{query(itself), anonymous, "itself both"}, {query(itself + "/"), anonymous, "itself both"},
			{query(wiki), anonymous, ""}, {query("https://mail.example"), anonymous, ""}, {query(strings.ToUpper(mail)), anonymous, ""},
			{query(mail + "/"), anonymous, ""},
		} {
			for name, access := range tokens {
				for _, path := range []string{verifyPath + "?", authorizePath + "?session_id=" + id + "&"} {
					r := w.get(path+test.query, asAgent(access), test.header)
					if slices.Contains(strings.Fields(test.passes), name) {
						r.identifies(w, agentScopes...)
					} else {
						r.stopped(401, "invalid_token")
					}
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
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		colleague, of := w.newAgent(), w.grantFor(mail, itself).isFor(w, mail, itself)
		for audience, active := range map[string]bool{mail: true, itself: true, itself + "/": true, wiki: false, mail + "/": false} {
			for _, text := range []string{of.access, of.refresh} {
				for _, r := range []*response{
					w.post("/v1/auth/introspect", fields{"token": text, "audience": audience}, asKey(w.key)).is(200),
					w.postForm("/oauth2/introspect", byPost(colleague, "token", text, "audience", audience)).is(200),
				} {
					if r.has(fields{"active": active}); !active {
						r.inactive()
					}
				}
			}
		}
		w.post("/v1/auth/introspect", fields{"token": of.access, "audience": ""}, asKey(w.key)).invalid("audience")
		w.post("/v1/auth/introspect", fields{"token": of.access, "audience": list(mail)}, asKey(w.key)).invalid("audience")
		w.postForm("/oauth2/introspect", byPost(colleague, "token", of.access, "audience", itself, "audience", mail)).refusedOAuth(400, "invalid_request")
	})
}

// A token that was granted before the signing key became longer: the refusal is no reuse, however late the client tries again.
func TestARefreshWhoseTokenWouldBeTooLongSpendsNothing(t *testing.T) {
	t.Parallel()
	with := setup{noKeys: true, store: redisstore.Config{RefreshGrace: time.Millisecond}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		refresh := token.GenerateRefreshKey()
		api.on.server.SetKeyring(newKeyringOf(t, must(token.GenerateSigningKey(token.Ed25519))(t), refresh))
		w, scopes, resources := api.newTenant(), []string{}, []string{}
		for i := range 60 { // the agent's tokens are as long as any
			scopes = append(scopes, fmt.Sprintf("scope:%04d", i))
		}
		for i := range 8 {
			resources = append(resources, fmt.Sprintf("https://%d.example/", i)+strings.Repeat("r", 46))
		}
		w.agent = w.newAgentWith(scopes...)
		h := w.holding("ES256")
		granted := pairIn(w.grantFor(resources...).is(200)).refresh
		asked := []string{"grant_type", "client_credentials"}
		for _, resource := range resources[:7] {
			asked = append(asked, "resource", resource)
		}
		bound := pairIn(h.postForm("/oauth2/token", form(asked...), byBasic(w.agent), h.at("/oauth2/token")).is(200)).refresh
		spent := granted
		granted = pairIn(w.renew(spent).is(200)).refresh

		api.on.server.SetKeyring(newKeyringOf(t, longKey(t), refresh))
		w.grantFor(resources...).refusedOAuth(400, "invalid_target")
		w.exchangeWith(list(resources...)).refused(400, "invalid_target")
		w.grantFor(resources[0]).is(200)
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
