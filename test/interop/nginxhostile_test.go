package interop

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/test/hostile"
)

// throughNginx also puts the service's API behind nginx, on keep-alive connections that all clients share.
const throughNginx = `location / {
            proxy_pass http://remit;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_request_buffering %s;
        }`

// If nginx and the service disagree about where a request ends, the rest stays on their connection and the next client gets the
// wrong response (request smuggling). So an innocent client sends requests after each hostile one, whatever its outcome.
func TestNginxPreventsRequestSmuggling(t *testing.T) {
	t.Parallel()
	for _, buffering := range []string{"on", "off"} {
		t.Run("buffering "+buffering, func(t *testing.T) {
			t.Parallel()
			attacker, innocent := newVisitor(t), newVisitor(t)
			g := startNginx(t, attacker.service.URL, strings.Replace(throughNginx, "%s", buffering, 1))
			credentials := hostile.Credentials{
				Key: attacker.Key, Access: attacker.token, Session: attacker.session.ID, Agent: attacker.agent.ID,
			}
			passed := 0
			for _, group := range hostile.Groups() {
				for _, request := range group.Requests {
					for _, raw := range []string{request.Raw, toProxy.Replace(request.Raw)} {
						answer := g.sendRaw(t, credentials.Fill(raw), request.Fate == hostile.Cut)
						if bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
							passed++
						}
						if bytes.Contains(answer, []byte(innocent.agent.ID)) {
							t.Errorf("%s, %s: the attacker got another client's response: %s", group.Name, request.Name, answer)
						}
						g.wantOwnResponses(t, innocent, group.Name+", "+request.Name)
					}
				}
			}
			if passed < 50 {
				t.Errorf("nginx forwarded only %d of the requests: the test proves nothing", passed)
			}
		})
	}
}

// toProxy turns requests to the API into requests to the protected locations of nginx.
var toProxy = strings.NewReplacer("/sessions/{session}/actions", "/search/x", "/v1/agents", "/reports/x",
	"X-API-Key: {key}", "Authorization: Bearer {access}\r\nX-Session-Id: {session}")

// sendRaw sends bytes unchanged and returns what nginx sends until it closes the connection or is silent for 1.5 seconds. It
// half-closes the connection only if cut is set, because nginx would see a client that has left, and drop its connection to the
// service.
func (g *proxy) sendRaw(t *testing.T, raw string, cut bool) []byte {
	t.Helper()
	conn := must(g.dial(t.Context(), "", ""))(t)
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, raw) // nginx may refuse before it has read everything
		if cut {
			_ = conn.(*net.UnixConn).CloseWrite()
			return
		}
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") // so that nginx closes the connection
	}()
	var answer bytes.Buffer
	for buffer := make([]byte, 32<<10); ; {
		_ = conn.SetReadDeadline(time.Now().Add(1500 * time.Millisecond)) // Read reports a dead connection
		n, err := conn.Read(buffer)
		answer.Write(buffer[:n])
		if err != nil {
			return answer.Bytes()
		}
	}
}

// wantOwnResponses fails the test unless the visitor gets the responses to its own requests, from the API and the backend.
func (g *proxy) wantOwnResponses(t *testing.T, v visitor, after string) {
	t.Helper()
	header := http.Header{"X-Api-Key": {v.Key}, "X-Request-Id": {"innocent-" + strconv.FormatInt(time.Now().UnixNano(), 36)}}
	response, body := g.asked(t, http.MethodGet, "/v1/agents/"+v.agent.ID, header, nil)
	if response.StatusCode != 200 || response.Header.Get("X-Request-Id") != header.Get("X-Request-Id") || !strings.Contains(body, v.agent.ID) {
		t.Fatalf("after %s the next client's response is %s %v %s", after, response.Status, response.Header, body)
	}
	response, body = g.asked(t, http.MethodGet, "/reports/own", bearing(v.token, ""), nil)
	var seen seenRequest
	if err := json.Unmarshal([]byte(body), &seen); err != nil || response.StatusCode != 200 || seen.Target != "/reports/own" || seen.Header.Get("X-Agent-Id") != v.agent.ID {
		t.Fatalf("after %s the backend saw for the next client: %s %s", after, response.Status, body)
	}
}
