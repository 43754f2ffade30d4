package server_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/internal/token"
)

const (
	itsMetadata     = `, resource_metadata="` + issuer + `/.well-known/oauth-protected-resource"`
	bearerChallenge = `Bearer realm="remit"` + itsMetadata
	keyChallenge    = `APIKey realm="remit", header="X-API-Key"`
	invalidToken    = `Bearer realm="remit", error="invalid_token", error_description="the access token is not valid, has expired or was revoked"` + itsMetadata
)

// RFC 9110 §11.6.1 asks for a challenge in each 401, RFC 6750 §3 for its form where a token is meant.
func TestEach401SaysWhichCredentialIsWanted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
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
		for _, e := range endpointsOfAgents(transaction) {
			check(w.ask(e.method, e.path, e.body), "missing_credentials", bearerChallenge)
			check(w.ask(e.method, e.path, e.body, asKey(w.key)), "missing_credentials", bearerChallenge)
			check(w.ask(e.method, e.path, e.body, dead), "invalid_token", invalidToken)
		}
		check(w.post("/v1/auth/revoke", refresh), "missing_credentials", bearerChallenge)
		check(w.post("/v1/auth/revoke", refresh, asKey(w.key)), "missing_credentials", bearerChallenge)
		check(w.post("/v1/auth/revoke", refresh, dead), "invalid_token", invalidToken)
		check(w.post("/v1/auth/revoke", fields{"refresh_token": "x"}, asAgent(tokens.access)), "invalid_refresh_token", bearerChallenge)
		check(w.post("/v1/auth/refresh", fields{"refresh_token": "x"}), "invalid_refresh_token", bearerChallenge)
		check(w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": token.NewAgentSecret()}), "invalid_credentials", bearerChallenge)
	})
}

func TestOtherRefusalsHaveNoChallenge(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	session := w.newSession(fields{"max_actions": 1})
	for _, r := range []*response{
		w.get("/nothing").refused(404, "not_found"),
		w.get("/sessions/"+uuid.NewString(), asKey(w.key)).refused(404, "not_found"),
		w.ask("PATCH", "/v1/agents", nil).refused(405, "method_not_allowed"),
		w.post("/v1/organizations", fields{}).refused(400, "invalid_request"),
		w.post("/sessions/"+session+"/actions", fields{"count": 2}, asKey(w.key)).refused(403, "session_limit_reached"),
	} {
		if got := r.header.Get("WWW-Authenticate"); got != "" {
			t.Errorf("%s: WWW-Authenticate %q", r.what, got)
		}
		if got := r.header.Get("Retry-After"); got != "" {
			t.Errorf("%s: Retry-After %q", r.what, got)
		}
	}
}

func TestAnUnsupportedMethodGetsTheAllowedOnes(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	id := uuid.NewString()
	for path, allowed := range map[string][]string{
		"/healthz": {"GET", "HEAD"}, "/readyz": {"GET", "HEAD"}, "/metrics": {"GET", "HEAD"},
		"/.well-known/jwks.json": {"GET", "HEAD"},
		"/v1/organizations":      {"POST"}, "/v1/organizations/" + id: {"GET", "HEAD"},
		"/v1/organizations/" + id + "/api-key/rotate": {"POST"},
		"/v1/api-keys":                   {"GET", "HEAD", "POST"},
		"/v1/api-keys/" + id:             {"DELETE"},
		"/v1/api-keys/" + id + "/rotate": {"POST"},
		"/v1/agents":                     {"GET", "HEAD", "POST"}, "/v1/agents/" + id: {"DELETE", "GET", "HEAD", "PATCH"},
		"/v1/agents/" + id + "/suspend": {"POST"}, "/v1/agents/" + id + "/resume": {"POST"},
		"/sessions/" + id + "/suspend": {"POST"}, "/v1/sessions/" + id + "/resume": {"POST"},
		"/v1/agents/" + id + "/revoke": {"POST"}, "/v1/agents/" + id + "/secret/rotate": {"POST"},
		"/v1/auth/token": {"POST"}, "/v1/auth/refresh": {"POST"}, "/v1/auth/revoke": {"POST"},
		"/sessions": {"GET", "HEAD", "POST"}, "/v1/sessions": {"GET", "HEAD", "POST"},
		"/sessions/" + id: {"GET", "HEAD", "PATCH"}, "/v1/sessions/" + id: {"GET", "HEAD", "PATCH"},
		"/v1/actions": {"POST"}, "/v1/agents/" + id + "/events": {"GET", "HEAD"},
		"/v1/agents/" + id + "/families": {"GET", "HEAD"}, "/v1/agents/" + id + "/families/" + id: {"DELETE"},
		"/v1/transactions": {"GET", "HEAD", "POST"}, "/v1/transactions/" + id: {"GET", "HEAD", "PATCH"},
		"/v1/transactions/" + id + "/commit": {"POST"}, "/v1/transactions/" + id + "/rollback": {"POST"},
		"/sessions/" + id + "/leases": {"POST"}, "/v1/leases/" + id: {"GET", "HEAD"}, "/v1/leases/" + id + "/settle": {"POST"},
		"/sessions/" + id + "/requests": {"GET", "HEAD", "POST"}, "/v1/sessions/" + id + "/requests/" + id: {"GET", "HEAD"},
		"/v1/sessions/" + id + "/requests/" + id + "/approve": {"POST"}, "/sessions/" + id + "/requests/" + id + "/deny": {"POST"},
		"/sessions/" + id + "/end": {"POST"}, "/v1/sessions/" + id + "/actions": {"POST"},
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"} {
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
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	for _, route := range api.on.server.Routes() {
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
