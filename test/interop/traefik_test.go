//go:build traefik

package interop

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/serviceproc"
	"remit/test/tool"
)

// The tests of this file run Traefik with the shipped deploy/traefik/remit.yaml, of which they change the two addresses.
// Debian has no package of Traefik, so they have a tag of their own; docs/proxies.md says how to run them.

// startTraefik runs Traefik until the test ends, with the service at remitURL.
func startTraefik(t *testing.T, remitURL string) *proxy {
	t.Helper()
	shipped := must(os.ReadFile("../../deploy/traefik/remit.yaml"))(t)
	g := &proxy{backend: startBackend(t)}
	file := filepath.Join(t.TempDir(), "remit.yaml")
	addresses := strings.NewReplacer("http://127.0.0.1:8080", remitURL, "http://127.0.0.1:9000", g.backend.server.URL)
	noError(t, os.WriteFile(file, []byte(addresses.Replace(string(shipped))), 0o600))
	port := must(redisproc.FreePort())(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p, err := serviceproc.StartProcess(exec.Command(tool.Path(t, "traefik"), "--entryPoints.web.address="+address,
		"--providers.file.filename="+file, "--global.checkNewVersion=false", "--global.sendAnonymousUsage=false"))
	noError(t, err)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(p.Output())
		}
	})
	g.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	transport := &http.Transport{DialContext: g.dial, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	g.client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	err = p.Await(func() bool { // it answers 404 until it has read the file
		response, _, err := g.ask(t.Context(), http.MethodGet, "/reports/", nil, nil)
		return err == nil && response.StatusCode == 401
	})
	noError(t, err)
	return g
}

func TestTraefikForwardsAuthorizedRequestsWithTheAgentsIdentity(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startTraefik(t, v.service.URL)
	for path, session := range map[string]string{"/reports/2026?page=2": "", "/search/deep?value_usd=0&count=3": v.session.ID} {
		header := bearing(v.token, session)
		for _, forged := range []string{"X-Agent-Id", "X-Org-Id", "X-Scopes", "X-Actor-Id", "X-Cnf-Jkt"} {
			header[forged] = []string{"forged", "forged"}
		}
		for name, value := range map[string]string{"X-Value-Usd": "0", "X-Count": "3", "X-Scope": "none", "X-Audience": "https://else.example"} {
			header.Set(name, value)
		}
		g.wantStatus(t, 200, http.MethodPost, path, header)
	}
	g.backend.wantRequests(t, 2)
	for _, request := range g.backend.requests() {
		want := map[string][]string{
			"X-Agent-Id": {v.agent.ID}, "X-Org-Id": {v.ID}, "X-Scopes": {"reports:read search"}, "X-Actor-Id": nil, "X-Cnf-Jkt": nil,
		}
		if strings.HasPrefix(request.Target, "/search/") {
			want["X-Remaining-Actions"], want["X-Remaining-Value-Usd"] = []string{"9"}, []string{"0.95"}
		}
		for name, values := range want {
			if got := request.Header.Values(name); !slices.Equal(got, values) {
				t.Errorf("%s: %s is %q at the backend, want %q", request.Target, name, got, values)
			}
		}
	}
	v.wantCharged(t, v.session, 1, "0.05")
}

func TestTraefikPassesRefusalsToTheClient(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startTraefik(t, v.service.URL)
	for i := range 10 { // all its actions
		g.wantStatus(t, 200, http.MethodGet, fmt.Sprint("/search/", i), bearing(v.token, v.session.ID))
	}
	narrow := v.accessToken(t, v.newAgent(t, "else"))
	for _, refused := range []struct {
		name, path string
		header     http.Header
		status     int
		code       string
	}{
		{"no token", "/reports/", nil, 401, "missing_credentials"},
		{"a wrong token", "/reports/", bearing(v.token[:len(v.token)-3]+"AAA", ""), 401, "invalid_token"},
		{"no scope", "/reports/", bearing(narrow, ""), 403, "insufficient_scope"},
		{"no session", "/search/", bearing(v.token, ""), 403, "invalid_request"},
		{"no actions left", "/search/", bearing(v.token, v.session.ID), 403, "session_limit_reached"},
	} {
		response, body := g.asked(t, http.MethodGet, refused.path, refused.header, nil)
		if response.StatusCode != refused.status || !strings.Contains(body, `"code":"`+refused.code+`"`) {
			t.Errorf("%s: %s: %s", refused.name, response.Status, body)
		}
		if challenge := response.Header.Get("WWW-Authenticate"); refused.status == 401 && !strings.HasPrefix(challenge, `Bearer realm="remit"`) {
			t.Errorf("%s: the challenge is %q", refused.name, challenge)
		}
	}
	g.backend.wantRequests(t, 10)
	v.wantCharged(t, v.session, 10, "0.5")
}

func TestTraefikPassesProofsToRemitAndTheirKeyToTheBackend(t *testing.T) {
	t.Parallel()
	passesProofs(t, startTraefik)
}

func TestTraefikForwardsToAResourceOnlyWithATokenForIt(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	g := startTraefik(t, v.service.URL)
	forwardsToAResource(t, v, g)
	g.wantStatus(t, 200, http.MethodGet, metadata, nil)
	g.backend.wantRequests(t, 2)
}
