package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// The tests of this file run nginx with the shipped deploy/nginx/remit.conf: /reports/ requires the scope reports:read,
// /search/ requires the scope search and charges an action of 0.05 USD per request, and /mcp requires a token for
// https://api.example.com/mcp with the scope tools:call.

// ask sends a request through the proxy and returns the response and its body.
func (g *proxy) ask(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://proxy"+path, body)
	if err != nil {
		return nil, "", err
	}
	if header != nil {
		request.Header = header
	}
	response, err := g.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response, string(text), err
}

// asked is ask for a test that takes a response for granted.
func (g *proxy) asked(t *testing.T, method, path string, header http.Header, body io.Reader) (*http.Response, string) {
	t.Helper()
	response, text, err := g.ask(t.Context(), method, path, header, body)
	noError(t, err)
	return response, text
}

func (g *proxy) wantStatus(t *testing.T, status int, method, path string, header http.Header) *http.Response {
	t.Helper()
	response, body := g.asked(t, method, path, header, nil)
	if response.StatusCode != status {
		t.Errorf("%s %s: %s, want %d: %s", method, path, response.Status, status, body)
	}
	return response
}

// bearing returns the headers of a request with an access token and, unless it is "", a session.
func bearing(token, session string) http.Header {
	header := http.Header{"Authorization": {"Bearer " + token}}
	if session != "" {
		header.Set("X-Session-Id", session)
	}
	return header
}

// visitor is an agent that uses the proxy. It has both scopes, and a session with 10 actions and 1 USD.
type visitor struct {
	organization
	agent   agent
	token   string
	session session
}

func newVisitor(t *testing.T) visitor {
	t.Helper()
	v := visitor{organization: newOrganization(t, sharedService(t))}
	v.agent = v.newAgent(t, "reports:read", "search")
	v.token, v.session = v.accessToken(t, v.agent), v.newSession(t, v.agent, 10, 1)
	return v
}

// The identity is Remit's, whatever the client says of itself.
func TestNginxForwardsAuthorizedRequestsWithTheAgentsIdentity(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	forging := func(header http.Header) http.Header {
		for _, name := range []string{
			"X-Agent-Id", "x-agent-id", "X-ORG-ID", "X-Org-Id", "X-Scopes", "X-Actor-Id", "x-actor-id", "X-Cnf-Jkt", "x-cnf-jkt",
			"X_Agent_Id", "X_Org_Id", "X_Scopes", "X_Actor_Id",
		} {
			header[name] = []string{"forged", "forged"} // not canonicalized
		}
		return header
	}
	g.wantStatus(t, 200, http.MethodGet, "/reports/2026?page=2", forging(bearing(v.token, "")))
	answer := g.wantStatus(t, 200, http.MethodPost, "/search/deep", forging(bearing(v.token, v.session.ID)))
	if actions, value := answer.Header.Get("X-Remaining-Actions"), answer.Header.Get("X-Remaining-Value-Usd"); actions != "9" || value != "0.95" {
		t.Errorf("the response says that %q actions and %q USD remain", actions, value)
	}
	g.backend.wantRequests(t, 2)
	for _, request := range g.backend.requests() {
		want := map[string]string{"X-Agent-Id": v.agent.ID, "X-Org-Id": v.ID, "X-Scopes": "reports:read search"}
		for name, value := range want {
			if got := request.Header.Values(name); !slices.Equal(got, []string{value}) {
				t.Errorf("%s: %s is %q at the backend, want %q", request.Target, name, got, value)
			}
		}
		for name, values := range request.Header {
			if slices.Contains(values, "forged") {
				t.Errorf("%s: the backend got %s: %q", request.Target, name, values)
			}
		}
	}
	if target := g.backend.requests()[0].Target; target != "/reports/2026?page=2" {
		t.Errorf("the backend got the request target %s", target)
	}
	v.wantCharged(t, v.session, 1, "0.05")
}

func TestNginxRefusesRequestsWithoutAValidTokenTheScopeOrASessionOfTheAgent(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	other := v.newAgent(t, "else")
	theirs, token, tampered := v.newSession(t, other, 10, 1), v.accessToken(t, other), v.token[:len(v.token)-3]+"AAA"
	for _, path := range []string{"/reports/", "/search/"} {
		missing := g.wantStatus(t, 401, http.MethodGet, path, http.Header{"X-Session-Id": {v.session.ID}})
		if challenge := missing.Header.Get("WWW-Authenticate"); challenge != `Bearer realm="remit"` {
			t.Errorf("%s: without a token the challenge is %q", path, challenge)
		}
		invalid := g.wantStatus(t, 401, http.MethodGet, path, bearing(tampered, v.session.ID))
		if challenge := invalid.Header.Get("WWW-Authenticate"); !strings.Contains(challenge, `error="invalid_token"`) {
			t.Errorf("%s: with a tampered token the challenge is %q", path, challenge)
		}
		g.wantStatus(t, 403, http.MethodGet, path, bearing(token, theirs.ID))
	}
	for _, id := range []string{"", "none", theirs.ID, v.session.ID + "&value_usd=0"} {
		g.wantStatus(t, 403, http.MethodGet, "/search/", bearing(v.token, id))
	}
	v.wantCharged(t, theirs, 0, "0")
	v.wantCharged(t, v.session, 0, "0")
	v.revoke(t, v.agent)
	for _, path := range []string{"/reports/", "/search/"} {
		g.wantStatus(t, 401, http.MethodGet, path, bearing(v.token, v.session.ID))
	}
	v.wantCharged(t, v.session, 0, "0")
	g.backend.wantRequests(t, 0)
}

func TestNginxSendsRemitOnlyTheCredentials(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	remit := recordingProxy(t, v.service)
	g := startNginx(t, remit.server.URL)
	body := bytes.Repeat([]byte("large "), 150_000) // 900 kB: the service itself refuses bodies over 256 KiB
	sum := sha256.Sum256(body)
	for _, path := range []string{"/reports/", "/search/"} {
		for name, content := range map[string]io.Reader{
			"with a length": bytes.NewReader(body),
			"in chunks":     struct{ io.Reader }{bytes.NewReader(body)},
		} {
			header := bearing(v.token, v.session.ID)
			header.Set("Cookie", "private=1")
			header.Set("X-Api-Key", "rmk_private")
			response, text := g.asked(t, http.MethodPost, path, header, content)
			if response.StatusCode != 200 || !strings.Contains(text, hex.EncodeToString(sum[:])) {
				t.Errorf("%s, a body %s: %s, and the backend got another body: %s", path, name, response.Status, text)
			}
		}
	}
	allowed := []string{
		"Authorization", "X-Request-Id", "X-Session-Id",
		"X-Original-Method", "X-Original-Uri", "X-Forwarded-Proto", "X-Forwarded-Host", // for proofs
	}
	for _, request := range remit.requests() {
		if request.Method != http.MethodGet || request.BodySize != 0 {
			t.Errorf("Remit got %s and %d bytes of body", request.Method, request.BodySize)
		}
		for name := range request.Header {
			if !slices.Contains(allowed, name) {
				t.Errorf("Remit got the header %s: %s", name, request.Header.Get(name))
			}
		}
	}
	remit.wantRequests(t, 4)
}

func TestNginxForwardsNothingWhenRemitIsDown(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	remit := recordingProxy(t, v.service)
	g := startNginx(t, remit.server.URL)
	remit.server.Close()
	for _, path := range []string{"/reports/", "/search/"} {
		g.wantStatus(t, 500, http.MethodGet, path, bearing(v.token, v.session.ID))
	}
	g.backend.wantRequests(t, 0)
}

func (o organization) tokenFor(t *testing.T, a agent, resources ...string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {a.ID}, "client_secret": {a.Secret}, "resource": resources}
	response := must(http.PostForm(o.service.URL+"/oauth2/token", form))(t)
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	if body := readAll(t, response); response.StatusCode != 200 || json.Unmarshal(body, &granted) != nil {
		t.Fatalf("no token for %q: %s: %s", resources, response.Status, body)
	}
	return granted.AccessToken
}

// The resource that the proxies protect, and where its metadata is.
const resource, metadata = "https://api.example.com/mcp", "/.well-known/oauth-protected-resource/mcp"

// forwardsToAResource lets a caller with a token for the resource pass, and no one else.
func forwardsToAResource(t *testing.T, v visitor, g *proxy) {
	t.Helper()
	caller := v.newAgent(t, "tools:call")
	g.wantStatus(t, 200, http.MethodPost, "/mcp", bearing(v.tokenFor(t, caller, resource), ""))
	request := g.backend.requests()[0]
	if agent, token := request.Header.Get("X-Agent-Id"), request.Header.Get("Authorization"); agent != caller.ID || token != "" {
		t.Errorf("the backend got the agent %q, want %q, and the token %q", agent, caller.ID, token)
	}
	for name, token := range map[string]string{
		"for Remit": v.accessToken(t, caller), "for another": v.tokenFor(t, caller, "https://api.example.com"),
		"for its neighbour": v.tokenFor(t, caller, resource+"/2"), "without the scope": v.tokenFor(t, v.agent, "https://other.example"),
	} {
		forged := bearing(token, "")
		forged["X-Audience"] = []string{resource, "https://api.example.com", v.service.URL}
		challenge := g.wantStatus(t, 401, http.MethodPost, "/mcp?audience=https://api.example.com", forged).Header.Get("WWW-Authenticate")
		if !strings.Contains(challenge, `error="invalid_token"`) || !strings.Contains(challenge, `resource_metadata="https://api.example.com`+metadata+`"`) {
			t.Errorf("a token %s: the challenge is %q", name, challenge)
		}
	}
	g.backend.wantRequests(t, 1)
}

func TestNginxForwardsToAResourceOnlyWithATokenForIt(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startNginx(t, v.service.URL)
	forwardsToAResource(t, v, g)
	g.wantStatus(t, 403, http.MethodPost, "/mcp", bearing(v.tokenFor(t, v.agent, resource), ""))
	missing := g.wantStatus(t, 401, http.MethodPost, "/mcp", nil).Header.Get("WWW-Authenticate")
	if want := `Bearer realm="remit", resource_metadata="https://api.example.com` + metadata + `"`; missing != want {
		t.Errorf("without a token the challenge is %q, want %q", missing, want)
	}
	g.wantStatus(t, 401, http.MethodGet, "/reports/", bearing(v.tokenFor(t, v.agent, resource), ""))
	g.backend.wantRequests(t, 1)

	response, body := g.asked(t, http.MethodGet, metadata, nil, nil)
	var document struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil || response.StatusCode != 200 || document.Resource != resource ||
		len(document.Servers) != 1 || response.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the metadata: %s, %s, %v: %s", response.Status, response.Header.Get("Content-Type"), err, body)
	}
}
