package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"remit/server/conn"
)

// largeTenant is an organization whose list of agents is a large answer.
type largeTenant struct{ key, agent string }

const (
	largeAgents = 12
	listOfLarge = 12 << 14 // bytes at least: each agent has 16 KiB of metadata, nearly
)

func (r runningServer) newLargeTenant(t *testing.T, client *http.Client) largeTenant {
	t.Helper()
	made := largeTenant{key: r.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "").text(t, "api_key")}
	body := fmt.Sprintf(`{"name":"scout","scopes":["read"],"metadata":{"m":%q}}`, strings.Repeat("m", 16_000))
	for range largeAgents {
		made.agent = r.post(t, client, "/v1/agents", body, "X-API-Key", made.key).is(t, 201, "").text(t, "id")
	}
	return made
}

func (r runningServer) list(t *testing.T, client *http.Client, of largeTenant) (status int, body string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+r.address+"/v1/agents?limit=12", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", of.key)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// readNothing asks for lists until the system's buffers are full, and reads none of them.
func (r runningServer) readNothing(t *testing.T, source string, of largeTenant) net.Conn {
	t.Helper()
	conn := sendFrom(t, source, r.address, "")
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, strings.Repeat("GET /v1/agents?limit=12 HTTP/1.1\r\nHost: x\r\nX-API-Key: "+of.key+"\r\n\r\n", 100)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// An organization whose clients do not read may have half of the memory for answers. Others are served, and so is what
// takes little memory.
func TestUnreadResponsesHoldBoundedMemory(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	client := from(t, "")
	slow := r.newLargeTenant(t, client)
	r.front.Unwritten.SetMost(2 * listOfLarge * 5 / 4) // one list for an organization
	awaitReserved(t, r.front.Unwritten, 0)

	stuck := r.readNothing(t, "", slow)
	awaitStuck(t, r.front.Unwritten, 1)
	status, body := r.list(t, client, slow)
	if status != 503 || !strings.Contains(body, `"unavailable"`) {
		t.Errorf("another list of the organization: %d %.100s", status, body)
	}
	r.post(t, client, "/v1/agents", `{"name":"small","scopes":["read"]}`, "X-API-Key", slow.key).is(t, 201, "")

	large := fmt.Sprintf(`{"agent_id":%q,"metadata":{"m":%q}}`, slow.agent, strings.Repeat("m", 16_000))
	r.front.Unwritten.SetMost(listOfLarge) // which the stuck list has alone
	r.post(t, client, "/sessions", large, "X-API-Key", slow.key, "Idempotency-Key", "once").is(t, 503, "outcome_unknown")

	_ = stuck.Close()
	awaitReserved(t, r.front.Unwritten, 0)
	again := r.post(t, client, "/sessions", large, "X-API-Key", slow.key, "Idempotency-Key", "once").is(t, 201, "")
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the session was created twice: %v", again.header)
	}
	r.front.Unwritten.SetMost(4 * listOfLarge)
	if status, _ := r.list(t, client, slow); status != 200 {
		t.Errorf("once the memory is free again: %d", status)
	}
	awaitReserved(t, r.front.Unwritten, 0)
}

// awaitStuck returns when so many large answers have not been written for a second: before that the system's buffers take
// one after the other.
func awaitStuck(t *testing.T, p *conn.Pool, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); p.HeldLonger(time.Second) != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d answers are stuck, want %d", p.HeldLonger(time.Second), want)
		}
	}
}
