package server_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/server"
)

const (
	itsMetadata     = `, resource_metadata="` + issuer + `/.well-known/oauth-protected-resource"`
	bearerChallenge = `Bearer realm="remit"` + itsMetadata
	keyChallenge    = `APIKey realm="remit", header="X-API-Key"`
	invalidToken    = `Bearer realm="remit", error="invalid_token", error_description="the access token is not valid, has expired or was revoked"` + itsMetadata
)

// RFC 9110 §11.6.1 asks for a challenge in each 401, RFC 6750 §3 for its form where a token is meant.
func TestEach401SaysWhichCredentialIsWanted(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		session, tokens := w.newSession(nil), w.exchange()
		ended := w.exchange()
		w.post("/v1/auth/revoke", fields{"refresh_token": ended.refresh}, asAgent(ended.access)).is(200)
		wrongKey, dead := asKey(newKeyOf(uuid.MustParse(w.org))), asAgent(ended.access)
		refresh := fields{"refresh_token": tokens.refresh}
		check := func(r *response, code, challenge string) {
			t.Helper()
			if got := r.refused(401, code).header.Values("WWW-Authenticate"); !slices.Equal(got, []string{challenge}) {
				t.Errorf("%s: WWW-Authenticate %q, want %q", r.what, got, challenge)
			}
		}
		for _, e := range endpointsOfOrganizations(w, session) {
			check(w.ask(e.method, e.path, e.body), "missing_credentials", keyChallenge)
			check(w.ask(e.method, e.path, e.body, asAgent(tokens.access)), "missing_credentials", keyChallenge)
			check(w.ask(e.method, e.path, e.body, wrongKey), "invalid_api_key", keyChallenge)
		}
		transaction := w.begin(nil)
		for _, e := range endpointsOfBoth(w, session, transaction) {
			check(w.ask(e.method, e.path, e.body), "missing_credentials", bearerChallenge+", "+keyChallenge)
			check(w.ask(e.method, e.path, e.body, wrongKey), "invalid_api_key", keyChallenge)
			check(w.ask(e.method, e.path, e.body, dead), "invalid_token", invalidToken)
		}
		for _, e := range endpointsOfAgents(w, session, transaction) {
			check(w.ask(e.method, e.path, e.body), "missing_credentials", bearerChallenge)
			check(w.ask(e.method, e.path, e.body, asKey(w.key)), "missing_credentials", bearerChallenge)
			check(w.ask(e.method, e.path, e.body, dead), "invalid_token", invalidToken)
		}
		keys := map[string]option{}
		for _, role := range roleNames {
			keys[role] = asKey(w.newKey(role).text)
		}
		for _, e := range w.endpoints(session, transaction, func(o server.Operation) bool { return !o.ByKey && !o.ByToken }) {
			without, _ := w.try(e.method, e.path, nil) // metrics are no JSON
			if strings.Contains(string(without.body), `"code":"missing_credentials"`) {
				t.Errorf("%s wants a credential, which openapi.json does not ask for: %s", without.what, without.body)
			}
			for role, key := range keys { // which changes nothing
				if with, _ := w.try(e.method, e.path, nil, key); with.status != without.status {
					t.Errorf("%s as %s: %d %s, and %d without a key", with.what, role, with.status, with.body, without.status)
				}
			}
		}
		check(w.post("/v1/auth/revoke", refresh), "missing_credentials", bearerChallenge)
		check(w.post("/v1/auth/revoke", refresh, asKey(w.key)), "missing_credentials", bearerChallenge)
		check(w.post("/v1/auth/revoke", refresh, dead), "invalid_token", invalidToken)
		check(w.post("/v1/auth/revoke", fields{"refresh_token": "x"}, asAgent(tokens.access)), "invalid_refresh_token", bearerChallenge)
		check(w.post("/v1/auth/refresh", fields{"refresh_token": "x"}), "invalid_refresh_token", bearerChallenge)
		check(w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": token.NewAgentSecret()}), "invalid_credentials", bearerChallenge)
	})
}

// The router would answer OPTIONS by itself: a proxy that keeps the client's method would let every such request in.
func TestAnUnsupportedMethodGetsTheAllowedOnes(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	var paths []string
	id := uuid.NewString()
	for _, o := range server.Operations() {
		paths = append(paths, pathsOf(o, func(string, string) string { return id })...)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		allowed := server.MethodsAt(path)
		if slices.Contains(allowed, "*") || path == "/v1/agents/suspend" || path == "/v1/agents/resume" { // as ids, these two have more
			continue
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			if slices.Contains(allowed, method) {
				continue
			}
			r := api.ask(method, path, nil).is(405)
			if method != "HEAD" {
				r.refused(405, "method_not_allowed")
			}
			got := strings.Split(r.header.Get("Allow"), ", ")
			for _, want := range allowed {
				if !slices.Contains(got, want) {
					t.Errorf("%s %s: Allow %q lacks %s", method, path, got, want)
				}
			}
			if slices.Contains(got, method) {
				t.Errorf("%s %s: Allow %q", method, path, got)
			}
		}
	}
}

func TestAPathWithASlashAtItsEndSaysSo(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	for _, route := range w.on.server.Routes() {
		_, path, _ := strings.Cut(route, " ")
		path = regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(path, w.agent.id)
		if path == "/" || strings.HasPrefix(path, verifyPath) || strings.HasPrefix(path, authorizePath) { // what follows is the original path
			continue
		}
		for _, method := range []string{"GET", "POST", "DELETE"} {
			r := w.ask(method, path+"/", nil, asKey(w.key)).refused(404, "not_found")
			if r.detail() != "there is nothing at this path: send it without the slash at the end" || r.header.Get("Location") != "" {
				t.Errorf("%s: %s, Location %q", r.what, r.body, r.header.Get("Location"))
			}
		}
	}
	for _, path := range []string{"/v1/nothing/", "/v1/", "/v1/agents/x/y/z/"} {
		if r := w.get(path, asKey(w.key)).refused(404, "not_found"); r.detail() != "there is nothing at this path" {
			t.Errorf("%s: %s", r.what, r.body)
		}
	}
}
