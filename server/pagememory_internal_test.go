package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"remit/server/conn"
	"remit/server/internal/web"
)

// Events take up to 6 KB each, and thousands may read them at once: memory for them is reserved before Redis is asked for them.
func TestEventsAreReadIntoReservedMemoryOnly(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	whole := w.front.Unwritten.Most
	for _, test := range []struct {
		url    string
		events int
		header []string
	}{
		{"/v1/events?limit=200", 200, nil}, {"/v1/events", web.DefaultPage, nil}, {"/v1/events?limit=1", 1, nil},
		{"/v1/events?limit=1&types=agent.created", 1 + web.MaxPage, nil}, {"/v1/events", conn.StreamPage, []string{acceptStream}},
		{w.url + "?limit=200", 200, nil}, {w.url, conn.StreamPage, []string{acceptStream}},
	} {
		w.front.Unwritten.SetMost(whole)
		w.sinceNow() // the key is known to be the organization's
		awaitReserved(t, w.front.Unwritten, 0)
		w.front.Unwritten.SetMost(2*test.events*conn.EventBytes - 2) // an organization may have half of it
		connection := w.dial(w.address)
		for tries := 1; ; tries++ { // Redis is asked for the organization's account once a second: this may be that second
			asked := w.redis.CommandCount()
			refused := w.ask(connection, test.url, test.header...)
			if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" {
				t.Fatalf("%s %v: %d, Retry-After %q", test.url, test.header, refused.StatusCode, refused.Header.Get("Retry-After"))
			}
			_, _ = io.Copy(io.Discard, refused.Body)
			asked = w.redis.CommandCount() - asked
			if asked == 0 {
				break
			}
			if asked > 1 || tries == 10 {
				t.Fatalf("%s %v: Redis is asked by refused request %d", test.url, test.header, tries)
			}
		}
		_ = connection.Close()
		w.front.Unwritten.SetMost(2 * test.events * conn.EventBytes)
		connection = w.dial(w.address)
		wantEqual(t, fmt.Sprintf("%s %v with enough memory", test.url, test.header), w.ask(connection, test.url, test.header...).StatusCode, http.StatusOK)
		if len(test.header) > 0 {
			w.waits(1)
			awaitReserved(t, w.front.Unwritten, 0) // while the stream waits
		}
		_ = connection.Close()
		w.waits(0)
	}
}

func TestWhoWaitsForEventsReservesNoMemory(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	for i, url := range []string{"/v1/events?wait=20&limit=200", "/v1/events?wait=20&types=agent.created", w.sinceNow() + "&wait=20&limit=200"} {
		conn := w.dial(w.address)
		go func() { _, _ = w.try(conn, url) }()
		w.waits(i + 1)
	}
	awaitReserved(t, w.front.Unwritten, 0)
}

// A stream whose client does not read holds one page, which is counted as long as it is held.
func TestAStreamThatIsNotReadHoldsOnePageInReservedMemory(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	for range 200 {
		w.change("an-event-of-the-usual-size")
	}
	awaitReserved(t, w.front.Unwritten, 0)
	narrow := w.serveShaped(t, func(tcp *net.TCPConn) net.Conn {
		_ = tcp.SetWriteBuffer(4 << 10)
		return tcp
	})
	connection := w.dial(narrow)
	must(0, connection.(*net.TCPConn).SetReadBuffer(4<<10))(t)
	request := "GET " + w.url + " HTTP/1.1\r\nHost: remit\r\nX-API-Key: " + w.key + "\r\n" + acceptStream + "\r\n\r\n"
	must(io.WriteString(connection, request))(t)
	awaitStuck(t, w.front.Unwritten, 1)
	if held := w.front.Unwritten.Reserved(); held <= 0 || held > conn.StreamPage*conn.EventBytes {
		t.Errorf("%d bytes are reserved, at most %d are held", held, conn.StreamPage*conn.EventBytes)
	}
	_ = connection.Close()
	awaitReserved(t, w.front.Unwritten, 0)
}

// A stream that finds no memory for its next page goes on when there is some.
func TestAStreamWaitsForMemory(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	whole, connection := w.front.Unwritten.Most, w.dial(w.address)
	answer := w.ask(connection, w.sinceNow(), acceptStream)
	w.waits(1)
	w.front.Unwritten.SetMost(0)
	w.change("later")
	time.Sleep(3 * conn.RoomPause)
	w.front.Unwritten.SetMost(whole)
	w.tells(bufio.NewScanner(answer.Body), "later")
}
