package interop

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests of this file send the exact requests that Envoy and Traefik send with deploy/envoy/envoy.yaml and
// deploy/traefik/remit.yaml. Neither program runs here. server's tests have every path, method and refusal.

// shape is a request on the wire; lines are its headers.
type shape struct {
	method, target string
	lines          []string
}

func (s *service) send(t *testing.T, request shape) (*http.Response, []byte) {
	t.Helper()
	conn := must(net.Dial("tcp", strings.TrimPrefix(s.URL, "http://")))(t)
	t.Cleanup(func() { conn.Close() })
	noError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	lines := append([]string{request.method + " " + request.target + " HTTP/1.1"}, request.lines...)
	must(fmt.Fprint(conn, strings.Join(lines, "\r\n"), "\r\n\r\n"))(t)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: request.method})
	if err != nil {
		t.Fatalf("%s %s: %v", request.method, request.target, err)
	}
	return response, readAll(t, response)
}

func (s *service) wantResponse(t *testing.T, status int, request shape) {
	t.Helper()
	response, body := s.send(t, request)
	if response.StatusCode != status {
		t.Errorf("%s %s: %s, want %d: %s", request.method, request.target, response.Status, status, body)
	}
}

// asEnvoy returns Envoy's request about a client's request to path. The lines of the configuration follow the client's.
func (v visitor) asEnvoy(method, prefix, path string, added ...string) shape {
	return shape{method, prefix + path, append([]string{
		"host: api.example.com", "content-length: 0", "authorization: Bearer " + v.token, "x-session-id: " + v.session.ID,
		"x-envoy-internal: true", "x-forwarded-for: 10.0.0.7", "x-envoy-expected-rq-timeout-ms: 2000",
	}, added...)}
}

func TestEnvoysRequests(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	foreign := v.newSession(t, v.agent, 10, 1)
	paths := []string{
		"/search/deep", "/search?value_usd=0&count=7&scope=none&action_type=free&session_id=" + foreign.ID, "/../../../healthz", "/%2Fsearch",
	}
	for _, path := range paths {
		v.service.wantResponse(t, 200, v.asEnvoy("GET", "/v1/auth/authorize", path, "x-value-usd: 0.05", "x-scope: search"))
		allowed, _ := v.service.send(t, v.asEnvoy("POST", "/v1/auth/verify", path, "x-scope: reports:read"))
		if allowed.StatusCode != 200 || allowed.Header.Get("X-Agent-Id") != v.agent.ID || allowed.Header.Get("X-Org-Id") != v.ID {
			t.Errorf("%s: %s, agent %q", path, allowed.Status, allowed.Header.Get("X-Agent-Id"))
		}
	}
	charge := func(v visitor, added ...string) shape {
		return v.asEnvoy("POST", "/v1/auth/authorize", "/search", added...)
	}
	lost, anonymous := v, charge(v, "x-value-usd: 0.05")
	lost.session.ID = "none"
	anonymous.lines = slices.DeleteFunc(anonymous.lines, func(line string) bool { return strings.HasPrefix(line, "authorization") })
	for _, refused := range []shape{
		v.asEnvoy("POST", "/v1/auth/verify", "/reports", "x-scope: admin"), charge(v, "x-value-usd: 0.05", "x-scope: admin"),
		charge(v, "x-value-usd: 1.01", "x-scope: search"), charge(v, "x-value-usd: plenty", "x-scope: search"), charge(lost, "x-value-usd: 0.05"),
	} {
		v.service.wantResponse(t, 403, refused)
	}
	refused, _ := v.service.send(t, anonymous)
	if refused.StatusCode != 401 || refused.Header.Get("WWW-Authenticate") != `Bearer realm="remit"` {
		t.Errorf("without a token: %s, challenge %q", refused.Status, refused.Header.Get("WWW-Authenticate"))
	}
	v.revoke(t, v.agent)
	v.service.wantResponse(t, 401, charge(v, "x-value-usd: 0.05", "x-scope: search"))
	v.wantCharged(t, v.session, len(paths), "0.2")
	v.wantCharged(t, foreign, 0, "0")
}

// asTraefik returns Traefik's request about a client's POST to path. client has the headers that it copies from the client.
func (v visitor) asTraefik(method, target, path string, client ...string) shape {
	return shape{method, target, append([]string{
		"Host: remit:8080", "User-Agent: Go-http-client/1.1", "Authorization: Bearer " + v.token,
		"X-Forwarded-For: 10.0.0.7", "X-Forwarded-Host: api.example.com", "X-Forwarded-Method: POST",
		"X-Forwarded-Port: 443", "X-Forwarded-Proto: https", "X-Forwarded-Server: traefik", "X-Forwarded-Uri: " + path,
		"X-Real-Ip: 10.0.0.7", "Accept-Encoding: gzip",
	}, client...)}
}

func TestTraefiksRequests(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	const target = "/v1/auth/authorize?value_usd=0.05&scope=search&action_type=search"
	allowed, _ := v.service.send(t, v.asTraefik("GET", target, "/search?value_usd=0", "X-Session-Id: "+v.session.ID))
	for name, want := range map[string]string{
		"X-Agent-Id": v.agent.ID, "X-Org-Id": v.ID, "X-Scopes": "reports:read search",
		"X-Remaining-Actions": "9", "X-Remaining-Value-Usd": "0.95",
	} {
		if got := allowed.Header.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", allowed.Status, name, got, want)
		}
	}
	// With preserveRequestMethod, and a client that tries to set the price.
	v.service.wantResponse(t, 200, v.asTraefik("POST", target, "/search", "X-Session-Id: "+v.session.ID, "Content-Length: 0",
		"X-Value-Usd: 0", "X-Scope: reports:read", "X-Action-Type: free"))
	v.service.wantResponse(t, 200, v.asTraefik("GET", "/v1/auth/verify?scope=reports:read", "/reports/2026"))
	v.service.wantResponse(t, 403, v.asTraefik("GET", "/v1/auth/verify?scope=admin", "/reports/2026"))
	v.wantCharged(t, v.session, 2, "0.1")
}

func TestEnvoysAndTraefiksRequestsNameAnAudience(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	own := v
	own.token = v.tokenFor(t, v.agent, resource)
	target := "/v1/auth/verify?scope=search&audience=" + resource
	for name, request := range map[string]func(v visitor) shape{
		"Envoy": func(v visitor) shape {
			return v.asEnvoy("POST", "/v1/auth/verify", "/mcp?audience=https://other.example", "x-scope: search", "x-audience: "+resource)
		},
		"Traefik": func(v visitor) shape { return v.asTraefik("GET", target, "/mcp") },
	} {
		v.service.wantResponse(t, 200, request(own))
		refused, _ := v.service.send(t, request(v))
		want := `resource_metadata="https://api.example.com/.well-known/oauth-protected-resource/mcp"`
		if got := refused.Header.Get("WWW-Authenticate"); refused.StatusCode != 401 || !strings.Contains(got, want) {
			t.Errorf("%s, with a token for Remit itself: %s, challenge %q", name, refused.Status, got)
		}
	}
}
