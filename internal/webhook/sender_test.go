package webhook

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remit/internal/outbound"
)

func TestASuccessIsA2xxOnly(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/redirect":
			http.Redirect(w, r, "/204", http.StatusTemporaryRedirect)
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/headers":
			w.Header().Set("Filler", strings.Repeat("a", 16<<10))
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/500":
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(receiver.Close)
	for _, test := range []struct {
		path, failed string
		status       int
	}{
		{"/", "", 200}, {"/204", "", 204}, {"/endless", "", 200}, {"/500", "the receiver did not answer 2xx", 500},
		{"/redirect", "the receiver redirects, which is not followed", 307}, {"/reset", "the connection failed", 0},
		{"/headers", "the connection failed", 0},
	} {
		t.Run(test.path[1:], func(t *testing.T) {
			t.Parallel()
			got := newSender(true, nil).send(t.Context(), request{url: receiver.URL + test.path, id: "id", body: []byte("{}")})
			if got.failed != test.failed || got.status != test.status {
				t.Errorf("%d %q, want %d %q", got.status, got.failed, test.status, test.failed)
			}
		})
	}
}

// loopbackNames is a resolver in which every name has the address 127.0.0.1, as one that was rebound has it.
func loopbackNames(t *testing.T) *net.Resolver {
	t.Helper()
	server := must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(loopbackAnswer(query[:n]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// loopbackAnswer answers a DNS query (RFC 1035 §4.1) for A with 127.0.0.1, and for anything else with nothing.
func loopbackAnswer(query []byte) []byte {
	end := 12 // behind the header
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, the type and the class
	answer := append([]byte{}, query[:end]...)
	answer[2], answer[3] = 0x81, 0x80
	copy(answer[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if query[end-3] == 1 {
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	return answer
}

// spellings are of private addresses, and why no request goes there. Go's resolver takes an IPv4 address in no other form than four
// decimal numbers; the others are names that no host has, and are asked of no server. Where the resolver of libc is used, which
// reads them as addresses, they are refused as such: TestTheServiceConnectsToNoPrivateAddress, in the program's own tests.
var spellings = map[string]string{
	"127.0.0.1": notPublicCause, "localhost": notPublicCause, "0.0.0.0": notPublicCause, "169.254.169.254": notPublicCause,
	"[::1]": notPublicCause, "[::]": notPublicCause, "[::ffff:127.0.0.1]": notPublicCause, "[::ffff:7f00:1]": notPublicCause,
	"[64:ff9b::7f00:1]": notPublicCause, "[2002:7f00:1::1]": notPublicCause, "[::1%25lo]": notPublicCause, "[fe80::1%25lo]": notPublicCause,
	"[2606:4700::1111%25lo]": notPublicCause, "[::7f00:1]": notPublicCause, "[::ffff:0:7f00:1]": notPublicCause,
	"１２７.０.０.１": notPublicCause, "127。0。0。1": notPublicCause, "localhost.": notPublicCause,
	"rebound.example": notPublicCause, "0x7f000001": notPublicCause, "0x7f.0.0.1": notPublicCause, // names that are this machine
	"127.1": unresolvedCause, "127.0.1": unresolvedCause, "2130706433": unresolvedCause, "017700000001": unresolvedCause,
	"0177.0.0.1": unresolvedCause, "127.000.000.001": unresolvedCause,
}

const (
	notPublicCause  = "the address is not public"
	unresolvedCause = "the host cannot be resolved"
)

func causeOf(err error) string {
	var name *net.DNSError
	switch {
	case errors.Is(err, outbound.ErrPrivateAddress):
		return notPublicCause
	case errors.As(err, &name):
		return unresolvedCause
	}
	return ""
}

// No spelling of this machine's own address, and no name that has it, is connected to: it is refused before a byte is sent, for the
// reason that is true of it.
func TestNoSpellingOfAPrivateAddressIsConnectedTo(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	receiver := httptest.NewUnstartedServer(http.NotFoundHandler())
	receiver.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	receiver.Start()
	t.Cleanup(receiver.Close)
	_, port, err := net.SplitHostPort(receiver.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resolver := loopbackNames(t)
	for host, cause := range spellings {
		r := request{url: "http://" + host + ":" + port + "/", body: []byte("{}")}
		if _, err := newSender(false, resolver).post(t.Context(), r, time.Now()); causeOf(err) != cause {
			t.Errorf("%s: %v, want %s", host, err, cause)
		}
		if got := newSender(false, resolver).send(t.Context(), r); got.failed != outbound.ErrPrivateAddress.Error() || got.status != 0 {
			t.Errorf("%s: %d %q", host, got.status, got.failed) // the webhook's owner does not learn which, nor which names exist
		}
	}
	if count := connections.Load(); count != 0 {
		t.Errorf("%d connections", count)
	}
	away := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") }}
	if got := newSender(false, away).send(t.Context(), request{url: "https://redis.internal/"}); got.failed != "the host cannot be resolved" {
		t.Errorf("without a server of names: %q", got.failed)
	}
	got := newSender(true, resolver).send(t.Context(), request{url: "http://rebound.example:" + port + "/", body: []byte("{}")})
	if got.status != http.StatusNotFound {
		t.Errorf("where it is allowed: %d %q", got.status, got.failed)
	}
}

func TestTheEnvironmentsProxyIsIgnored(t *testing.T) {
	t.Parallel()
	for _, allowPrivate := range []bool{true, false} {
		if transport := newSender(allowPrivate, nil).client.Transport.(*http.Transport); transport.Proxy != nil {
			t.Error("requests may go through a proxy")
		}
	}
}

func TestTheTimeOfARequestIsBounded(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(done) })
	s := newSender(true, nil)
	s.most = 50 * time.Millisecond
	got := s.send(t.Context(), request{url: receiver.URL, body: []byte("{}")})
	if got.failed != "the receiver did not answer in time" || got.took > 5*time.Second {
		t.Errorf("%q after %s", got.failed, got.took)
	}
}

// After 101 the connection is the receiver's own: no deadline of net/http ends what is read from it.
func TestAReceiverThatSwitchesProtocolsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed := make(chan error, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil { // net/http ends a connection on which a response comes before its request
			t.Error(err)
		}
		_, _ = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: anything\r\n\r\n"))
		_, err = io.Copy(io.Discard, c) // until the sender closes it
		closed <- err
		_ = c.Close()
	}()
	t.Cleanup(func() { _ = listener.Close() })
	answered := make(chan result, 1)
	s := newSender(true, nil)
	s.most = time.Second
	go func() {
		answered <- s.send(context.Background(), request{url: "http://" + listener.Addr().String(), body: []byte("{}")})
	}()
	select {
	case got := <-answered:
		if got.status != http.StatusSwitchingProtocols || got.failed != "the receiver did not answer 2xx" {
			t.Errorf("%d %q", got.status, got.failed)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for the receiver")
	}
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the connection stays open")
	}
}

// A sender reads no more than it must of a receiver that says that it is not ready, again and again.
func TestEndlessInterimResponsesEnd(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		c, err := listener.Accept()
		for err == nil {
			_, err = c.Write([]byte("HTTP/1.1 103 Early Hints\r\n\r\n"))
		}
	}()
	got := newSender(true, nil).send(t.Context(), request{url: "http://" + listener.Addr().String(), body: []byte("{}")})
	if got.failed != "the connection failed" || got.took > 10*time.Second {
		t.Errorf("%q after %s", got.failed, got.took)
	}
}
