package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/server/conn"
	"remit/server/internal/web"
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
	request := must(http.NewRequest(http.MethodGet, "http://"+r.address+"/v1/agents?limit=12", nil))(t)
	request.Header.Set("X-API-Key", of.key)
	response := must(client.Do(request))(t)
	defer response.Body.Close()
	text := must(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(text)
}

// readNothing asks for lists until the system's buffers are full, and reads none of them.
func (r runningServer) readNothing(t *testing.T, source string, of largeTenant) net.Conn {
	t.Helper()
	conn := sendFrom(t, source, r.address, "")
	must(0, conn.(*net.TCPConn).SetReadBuffer(4<<10))(t)
	must(io.WriteString(conn, strings.Repeat("GET /v1/agents?limit=12 HTTP/1.1\r\nHost: x\r\nX-API-Key: "+of.key+"\r\n\r\n", 100)))(t)
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
	await(t, fmt.Sprintf("%d answers are stuck", want), func() bool { return p.HeldLonger(time.Second) == want })
}

// A made-up API key names any organization. Who asks for lists with one, and reads no refusal, holds no memory of that
// organization's.
func TestAMadeUpKeyTakesNoMemoryOfTheOrganizationThatItNames(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	client := from(t, "")
	made := r.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "")
	victim := largeTenant{key: made.text(t, "api_key")}
	if status, body := r.list(t, client, victim); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	forged := token.NewAPIKey(uuid.MustParse(made.text(t, "id")))
	r.front.Unwritten.SetMost(2 * 205 * web.AgentBytes) // one list of the longest for each
	awaitReserved(t, r.front.Unwritten, 0)

	narrow := r.serveShaped(t, func(conn *net.TCPConn) net.Conn { // so that few refusals fill the system's buffers
		_ = conn.SetWriteBuffer(4 << 10)
		return conn
	})
	stuck := sendFrom(t, "127.0.0.2", narrow, "")
	must(0, stuck.(*net.TCPConn).SetReadBuffer(4<<10))(t)
	request := "GET /v1/agents?limit=200 HTTP/1.1\r\nHost: x\r\nX-API-Key: " + forged + "\r\n\r\n"
	go func() { // until nothing is read any more
		for {
			if _, err := io.WriteString(stuck, strings.Repeat(request, 100)); err != nil {
				return
			}
		}
	}()
	awaitBlocked(t, r)
	awaitReserved(t, r.front.Unwritten, 0) // refusals that are not read hold nothing; one that is under way may for a moment
	if status, body := r.list(t, client, victim); status != 200 {
		t.Errorf("the organization's own list: %d %s", status, body)
	}
}

// awaitBlocked returns when Redis has received nothing for half a second.
func awaitBlocked(t *testing.T, r runningServer) {
	t.Helper()
	last, since := 0, time.Now()
	for deadline := time.Now().Add(9 * time.Second); time.Since(since) < 500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if now := r.redis.CommandCount(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatal("requests are still answered")
		}
	}
}
