package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"remit/client"
)

var tools = client.ProtectedResource{
	Resource: "https://tools.test/mcp", AuthorizationServers: []string{"https://issuer.test"}, Scopes: []string{"read"}, Name: "Tools",
}

func TestAResourceIsDescribed(t *testing.T) {
	t.Parallel()
	const want = `{"resource":"https://tools.test/mcp","authorization_servers":["https://issuer.test"],"scopes_supported":["read"],` +
		`"bearer_methods_supported":["header"],"dpop_signing_alg_values_supported":["ES256","ES384","EdDSA","RS256","PS256"],"resource_name":"Tools"}`
	if got := string(tools.Metadata()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for resource, want := range map[string]string{
		"https://tools.test/mcp":     "https://tools.test/.well-known/oauth-protected-resource/mcp",
		"https://tools.test":         "https://tools.test/.well-known/oauth-protected-resource",
		"https://tools.test/":        "https://tools.test/.well-known/oauth-protected-resource",
		"http://127.0.0.1:80/a%2Fb/": "http://127.0.0.1:80/.well-known/oauth-protected-resource/a%2Fb",
		"urn:b":                      "",
	} {
		if got := (client.ProtectedResource{Resource: resource}).MetadataURL(); got != want {
			t.Errorf("%s: %s, want %s", resource, got, want)
		}
	}
}

func TestAResourceAdmitsTokensThatTheServiceConfirms(t *testing.T) {
	t.Parallel()
	const page = `, resource_metadata="https://tools.test/.well-known/oauth-protected-resource/mcp"`
	confirmed := reaction{status: 200, header: http.Header{"X-Agent-Id": {"a1"}, "X-Org-Id": {"o1"}, "X-Scopes": {"read pay"}, "X-Actor-Id": {"a0"}}}
	for name, test := range map[string]struct {
		header    http.Header
		answer    reaction
		status    int
		challenge string
	}{
		"no token":       {http.Header{}, confirmed, 401, "Bearer " + page[2:]},
		"two":            {http.Header{"Authorization": {"Bearer t", "Bearer t"}}, confirmed, 401, "Bearer " + page[2:]},
		"another scheme": {http.Header{"Authorization": {"Basic t"}}, confirmed, 401, "Bearer " + page[2:]},
		"confirmed":      {http.Header{"Authorization": {"bearer t"}}, confirmed, 200, ""},
		"proved":         {http.Header{"Authorization": {"DPoP t"}, "Dpop": {"p"}}, confirmed, 200, ""},
		"not proved":     {http.Header{"Authorization": {"DPoP t"}}, confirmed, 401, "Bearer " + page[2:]},
		"two proofs":     {http.Header{"Authorization": {"DPoP t"}, "Dpop": {"p", "q"}}, confirmed, 401, "Bearer " + page[2:]},
		"refused":        {http.Header{"Authorization": {"Bearer t"}}, refusal(401, "invalid_token"), 401, `Bearer error="invalid_token"` + page},
		"lacks a scope":  {http.Header{"Authorization": {"Bearer t"}}, refusal(403, "insufficient_scope", `"required_scope":"pay"`), 403, `Bearer error="insufficient_scope", scope="pay"` + page},
		"wrong proof":    {http.Header{"Authorization": {"DPoP t"}, "Dpop": {"p"}}, refusal(401, "invalid_dpop_proof"), 401, `DPoP error="invalid_dpop_proof", algs="ES256 ES384 EdDSA RS256 PS256"` + page},
		"down":           {http.Header{"Authorization": {"Bearer t"}}, refusal(503, "unavailable"), 503, ""},
	} {
		f := &fake{react: inTurn(test.answer)}
		next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if v, ok := client.VerifiedFrom(r.Context()); !ok || v.AgentID != "a1" || v.ActorID != "a0" {
				t.Errorf("%s: %+v", name, v)
			}
		})
		handler := tools.Handler(newClient(t, f, client.Options{MaxAttempts: 1}), next)
		r, w := httptest.NewRequest("POST", "http://10.0.0.1/mcp/x?q=1", nil), httptest.NewRecorder()
		r.Header = test.header
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("WWW-Authenticate"); w.Code != test.status || got != test.challenge {
			t.Errorf("%s: %d %q, want %d %q", name, w.Code, got, test.status, test.challenge)
		}
		if len(f.requests) == 1 {
			asked := f.requests[0]
			if asked.query != "audience=https%3A%2F%2Ftools.test%2Fmcp" {
				t.Errorf("%s: asks for %s", name, asked.query)
			}
			if forwarded := asked.header.Get("X-Forwarded-Method") + asked.header.Get("X-Forwarded-Proto") + asked.header.Get("X-Forwarded-Host") + asked.header.Get("X-Forwarded-Uri"); test.header.Get("DPoP") != "" && forwarded != "POSThttpstools.test/mcp/x?q=1" {
				t.Errorf("%s: forwards %s", name, forwarded)
			}
		}
		w = httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/.well-known/oauth-protected-resource/mcp", nil))
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"resource":"https://tools.test/mcp"`) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("the document: %d %s", w.Code, w.Body)
		}
	}
}

// A proof is verified for one request. The service would take it for a replay when it comes again, and that request for stolen.
func TestAForwardedProofIsForOneRequest(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(fails(errReset), refusal(401, "invalid_dpop_proof"))}
	remit := newClient(t, f, client.Options{})
	for _, o := range []client.VerifyOptions{{Proof: "p"}, {Proof: "p", Method: "GET", URL: "/x"}, {Proof: "p", URL: "https://a.test/"}} {
		if _, err := remit.VerifyWith(t.Context(), "t", o); err == nil || errors.Is(err, client.ErrUnauthorized) || len(f.requests) != 0 {
			t.Errorf("%+v: %v, after %d requests", o, err, len(f.requests))
		}
	}
	o := client.VerifyOptions{Proof: "p", Method: "GET", URL: "https://a.test/"}
	if _, err := remit.VerifyWith(t.Context(), "t", o); !errors.Is(err, client.ErrOutcomeUnknown) || len(f.requests) != 1 {
		t.Errorf("%v, after %d requests", err, len(f.requests))
	}
}
