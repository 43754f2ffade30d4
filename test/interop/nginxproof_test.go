package interop

import (
	"net/http"
	"strings"
	"testing"

	"remit/test/prover"
)

func (o organization) boundToken(t *testing.T, a agent, key *prover.Key) string {
	t.Helper()
	var granted struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
	}
	header := http.Header{"Dpop": {key.Prove(prover.Proof{Method: http.MethodPost, URL: o.service.URL + "/v1/auth/token"})}}
	o.service.call(t, http.MethodPost, "/v1/auth/token", header, map[string]any{"agent_id": a.ID, "secret": a.Secret}, &granted)
	if granted.TokenType != "DPoP" {
		t.Fatalf("the token is of type %s", granted.TokenType)
	}
	return granted.AccessToken
}

// proving returns the headers of a request with a bound token, and a proof for this method and URL.
func proving(token string, key *prover.Key, method, url string) http.Header {
	return http.Header{
		"Authorization": {"DPoP " + token},
		"Dpop":          {key.Prove(prover.Proof{Method: method, URL: url, Token: token})},
	}
}

func TestNginxPassesProofsToRemitAndTheirKeyToTheBackend(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, remitURL string) *proxy { return startNginx(t, remitURL) }
	if passesProofs(t, start).Header.Get("DPoP-Nonce") == "" {
		t.Error("the client gets no nonce")
	}
}

// passesProofs tests a proxy in front of a service of its own, and returns its answer to a request with a proof. A proof names the URL at
// which the client asks the proxy, not that of Remit.
func passesProofs(t *testing.T, start func(*testing.T, string) *proxy) (answer *http.Response) {
	t.Helper()
	v := visitor{organization: newOrganization(t, startService(t, "--trusted-proxies", "127.0.0.0/8"))}
	v.agent = v.newAgent(t, "reports:read", "search")
	v.session = v.newSession(t, v.agent, 10, 1)
	key := prover.New("ES256")
	v.token = v.boundToken(t, v.agent, key)
	g := start(t, v.service.URL)

	const asked = "http://proxy" // see proxy.ask
	verified := proving(v.token, key, http.MethodGet, asked+"/reports/2026")
	answer = g.wantStatus(t, 200, http.MethodGet, "/reports/2026?page=2", verified)
	replayed := g.wantStatus(t, 401, http.MethodGet, "/reports/2026", verified).Header
	if challenge := replayed.Get("WWW-Authenticate"); !strings.Contains(challenge, `error="invalid_dpop_proof"`) || replayed.Get("DPoP-Nonce") == "" {
		t.Errorf("a replay: the challenge is %q, the nonce %q", challenge, replayed.Get("DPoP-Nonce"))
	}
	charged := proving(v.token, key, http.MethodPost, asked+"/search/deep")
	charged.Set("X-Session-Id", v.session.ID)
	g.wantStatus(t, 200, http.MethodPost, "/search/deep", charged)
	g.backend.wantRequests(t, 2)
	for _, request := range g.backend.requests() {
		if got := request.Header.Values("X-Cnf-Jkt"); len(got) != 1 || got[0] != key.Thumbprint() {
			t.Errorf("%s: the backend got X-Cnf-Jkt %q", request.Target, got)
		}
	}
	for name, header := range map[string]http.Header{
		"another URL":        proving(v.token, key, http.MethodGet, asked+"/reports/2025"),
		"another method":     proving(v.token, key, http.MethodPost, asked+"/reports/2026"),
		"Remit's own URL":    proving(v.token, key, http.MethodGet, v.service.URL+"/v1/auth/verify"),
		"another key":        proving(v.token, prover.New("ES256"), http.MethodGet, asked+"/reports/2026"),
		"the scheme Bearer":  bearing(v.token, ""),
		"the client's story": forging(proving(v.token, key, http.MethodGet, asked+"/reports/2025"), asked),
	} {
		if challenge := g.wantStatus(t, 401, http.MethodGet, "/reports/2026", header).Header.Get("WWW-Authenticate"); !strings.Contains(challenge, "DPoP ") {
			t.Errorf("%s: the challenge is %q", name, challenge)
		}
	}
	g.backend.wantRequests(t, 2)
	v.wantCharged(t, v.session, 1, "0.05")
	return answer
}

// forging adds what a client could say of the original request.
func forging(header http.Header, base string) http.Header {
	header.Set("X-Original-Uri", "/reports/2025")
	header.Set("X-Original-Url", base+"/reports/2025")
	header.Set("X-Forwarded-Uri", "/reports/2025")
	header.Set("X-Forwarded-Method", http.MethodGet)
	return header
}
