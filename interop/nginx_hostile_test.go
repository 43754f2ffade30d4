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

	"remit/internal/hostile"
)

// throughNginx puts the service's own API behind nginx too, on connections that nginx keeps and shares among its clients.
const throughNginx = `location / {
            proxy_pass http://remit;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_request_buffering %s;
        }`

// A request that nginx and the service end at different bytes leaves a rest on their connection, and with it the next
// client gets the answer to it. So an innocent client asks behind each hostile request, whatever became of that.
func TestNoHostileRequestReachesTheNextClientOfNginx(t *testing.T) {
	t.Parallel()
	for _, buffering := range []string{"on", "off"} {
		t.Run("buffering "+buffering, func(t *testing.T) {
			t.Parallel()
			attacker, innocent := newVisitor(t), newVisitor(t)
			g := startNginxWith(t, attacker.service.URL, strings.Replace(throughNginx, "%s", buffering, 1))
			credentials := hostile.Credentials{
				Key: attacker.Key, Access: attacker.token, Session: attacker.session.ID, Agent: attacker.agent.ID,
			}
			passed := 0
			for _, group := range hostile.Groups() {
				for _, request := range group.Requests {
					for _, raw := range []string{request.Raw, toGateway.Replace(request.Raw)} {
						answer := g.throw(t, credentials.Fill(raw), request.Fate == hostile.Cut)
						if bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
							passed++
						}
						if bytes.Contains(answer, []byte(innocent.agent.ID)) {
							t.Errorf("%s, %s: the attacker got another's answer: %s", group.Name, request.Name, answer)
						}
						g.wantOwnAnswers(t, innocent, group.Name+", "+request.Name)
					}
				}
			}
			if passed < 50 {
				t.Errorf("nginx passed %d of the requests on: the test proves nothing", passed)
			}
		})
	}
}

// toGateway makes requests for what nginx protects of those for the API.
var toGateway = strings.NewReplacer("/sessions/{session}/actions", "/search/x", "/v1/agents", "/reports/x",
	"X-API-Key: {key}", "Authorization: Bearer {access}\r\nX-Session-Id: {session}")

// lastOfAttacker is sent behind each request, so that nginx closes the connection.
const lastOfAttacker = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// throw sends bytes as they are and returns what comes back before nginx closes, or says nothing for a second and a half.
// Its side ends only with cut: nginx would take that for a client that has left, and drop its own connection to the service.
func (g *gateway) throw(t *testing.T, raw string, cut bool) []byte {
	t.Helper()
	conn, err := g.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, raw) // nginx may refuse before it has read all
		if cut {
			_ = conn.(*net.UnixConn).CloseWrite()
			return
		}
		_, _ = io.WriteString(conn, lastOfAttacker)
	}()
	var answer bytes.Buffer
	for buffer := make([]byte, 32<<10); ; {
		_ = conn.SetReadDeadline(time.Now().Add(1500 * time.Millisecond)) // a dead connection shows when it is read
		n, err := conn.Read(buffer)
		answer.Write(buffer[:n])
		if err != nil {
			return answer.Bytes()
		}
	}
}

// wantOwnAnswers fails the test unless the visitor gets the answers to its own requests: of the API, and of the backend.
func (g *gateway) wantOwnAnswers(t *testing.T, v visitor, behind string) {
	t.Helper()
	header := http.Header{"X-Api-Key": {v.Key}, "X-Request-Id": {"innocent-" + strconv.FormatInt(time.Now().UnixNano(), 36)}}
	response, body, err := g.ask(t.Context(), http.MethodGet, "/v1/agents/"+v.agent.ID, header, nil)
	if err != nil {
		t.Fatalf("behind %s: %v", behind, err)
	}
	if response.StatusCode != 200 || response.Header.Get("X-Request-Id") != header.Get("X-Request-Id") || !strings.Contains(body, v.agent.ID) {
		t.Fatalf("behind %s the next client's answer is %s %v %s", behind, response.Status, response.Header, body)
	}
	response, body, err = g.ask(t.Context(), http.MethodGet, "/reports/own", bearing(v.token, ""), nil)
	if err != nil {
		t.Fatalf("behind %s: %v", behind, err)
	}
	var seen seenRequest
	if err := json.Unmarshal([]byte(body), &seen); err != nil || response.StatusCode != 200 || seen.Target != "/reports/own" || seen.Header.Get("X-Agent-Id") != v.agent.ID {
		t.Fatalf("behind %s the backend was asked for the next client: %s %s", behind, response.Status, body)
	}
}
