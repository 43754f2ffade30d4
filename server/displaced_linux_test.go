package server

import (
	"bufio"
	"net"
	"net/http"
	"testing"
	"time"
)

// In a full pool an address that holds less takes the place of one that holds more. All of 127.0.0.0/8 is this machine.
func TestAFullPoolOfBodiesMakesRoomForAnotherAddress(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	r.front.Bodies.Unverified.SetMost(4 * 256 << 10)
	var held []net.Conn
	for _, source := range []string{"127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"} {
		held = append(held, sendFrom(t, source, r.address, announced["a length"]))
		awaitReserved(t, r.front.Bodies.Unverified, len(held)*256<<10)
	}
	wantStatus(t, sendFrom(t, "127.0.0.2", r.address, announced["a length"]), 503)
	r.post(t, from(t, "127.0.0.4"), "/v1/organizations", organizationOfSize(10_000)).is(t, 201, "")
	answered := 0
	for _, conn := range held {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			answered++
		}
	}
	wantEqual(t, "requests that made room", answered, 1)
}

// In a full pool an answer that is not read is cut for the answer of an organization that holds less.
func TestUnreadResponsesAreEvictedForAnotherOrganization(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	client := from(t, "127.0.0.9")
	first, second, third := r.newLargeTenant(t, client), r.newLargeTenant(t, client), r.newLargeTenant(t, client)
	awaitReserved(t, r.front.Unwritten, 0)
	r.front.Unwritten.SetMost(listOfLarge * 9 / 2) // two lists for each of two organizations, and a little
	for i, slow := range []largeTenant{first, first, second, second} {
		r.readNothing(t, []string{"127.0.0.2", "127.0.0.3"}[i/2], slow)
	}
	awaitStuck(t, r.front.Unwritten, 4)
	if status, body := r.list(t, client, third); status != 200 {
		t.Errorf("a third organization: %d %.100s", status, body)
	}
}
