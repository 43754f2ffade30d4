package server

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/server/internal/web"
)

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
	if err := stuck.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
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
