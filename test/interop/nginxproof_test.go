package interop

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"remit/test/prover"
)

// boundToken returns an access token of the agent that is bound to the key.
func (o organization) boundToken(t *testing.T, a agent, key *prover.Key) string {
	t.Helper()
	body := strings.NewReader(`{"agent_id":"` + a.ID + `","secret":"` + a.Secret + `"}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.service.URL+"/v1/auth/token", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("DPoP", key.Prove(prover.Proof{Method: http.MethodPost, URL: o.service.URL + "/v1/auth/token"}))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	var granted struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
	}
	if text := readAll(t, response); response.StatusCode != 200 || json.Unmarshal(text, &granted) != nil || granted.TokenType != "DPoP" {
		t.Fatalf("no bound token: %s: %s", response.Status, text)
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

// A proof names the URL at which the client asks nginx, not that of Remit.
func TestNginxPassesProofsToRemitAndTheirKeyToTheBackend(t *testing.T) {
	t.Parallel()
	v := visitor{organization: newOrganization(t, startService(t, "--trusted-proxies", "127.0.0.0/8"))}
	v.agent = v.newAgent(t, "reports:read", "search")
	v.session = v.newSession(t, v.agent, 10, 1)
	key := prover.New("ES256")
	v.token = v.boundToken(t, v.agent, key)
	g := startNginx(t, v.service.URL)

	const asked = "http://proxy" // see proxy.ask
	verified := proving(v.token, key, http.MethodGet, asked+"/reports/2026")
	answer := g.wantStatus(t, 200, http.MethodGet, "/reports/2026?page=2", verified)
	if answer.Header.Get("DPoP-Nonce") == "" {
		t.Error("the client gets no nonce")
	}
	g.wantStatus(t, 401, http.MethodGet, "/reports/2026", verified) // a replay
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
}

// forging adds what a client could say of the original request.
func forging(header http.Header, base string) http.Header {
	header.Set("X-Original-Uri", "/reports/2025")
	header.Set("X-Original-Url", base+"/reports/2025")
	header.Set("X-Forwarded-Uri", "/reports/2025")
	header.Set("X-Forwarded-Method", http.MethodGet)
	return header
}
