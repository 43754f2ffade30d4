package webhook

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"remit/internal/outbound"
	"remit/test/redistest"
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
		case "/hanging":
			_, _ = io.Copy(io.Discard, r.Body) // only then net/http notices that the client has gone
			<-r.Context().Done()
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
		{"/headers", "the connection failed", 0}, {"/hanging", "the receiver did not answer in time", 0},
	} {
		t.Run(test.path[1:], func(t *testing.T) {
			t.Parallel()
			s := newSender(true, nil)
			if test.path == "/hanging" {
				s.most = 50 * time.Millisecond
			}
			got := s.send(t.Context(), request{url: receiver.URL + test.path, id: "id", body: []byte("{}")})
			if got.failed != test.failed || got.status != test.status {
				t.Errorf("%d %q, want %d %q", got.status, got.failed, test.status, test.failed)
			}
			if got.took > requestTime/2 {
				t.Errorf("it took %s", got.took)
			}
		})
	}
}

// loopbackNames is a resolver in which every name has the address 127.0.0.1, as one that was rebound has it.
func loopbackNames() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe() // on a stream, the length of each message stands before it
		go func() {
			query := make([]byte, 512)
			if n, err := server.Read(query); err == nil {
				_, _ = server.Write(loopbackAnswer(query[2:n]))
			}
		}()
		return client, nil
	}}
}

// loopbackAnswer answers a query for A with 127.0.0.1, and for anything else with nothing.
func loopbackAnswer(packet []byte) []byte {
	var query dnsmessage.Message
	if query.Unpack(packet) != nil {
		return nil
	}
	query.Response, query.Additionals = true, nil
	if asked := query.Questions[0]; asked.Type == dnsmessage.TypeA {
		header := dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class}
		query.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	}
	answer, _ := query.AppendPack(make([]byte, 2))
	binary.BigEndian.PutUint16(answer, uint16(len(answer)-2))
	return answer
}

// No name that has this machine's own address is connected to: it is refused before a byte is sent. Package outbound has all addresses, and
// the service's own TestTheServiceConnectsToNoPrivateAddress the ways to spell one that either resolver takes for one.
func TestNoSpellingOfAPrivateAddressIsConnectedTo(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	receiver := httptest.NewUnstartedServer(http.NotFoundHandler())
	receiver.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	receiver.Start()
	t.Cleanup(receiver.Close)
	resolver := loopbackNames()
	to := func(host string) request {
		return request{url: fmt.Sprintf("http://%s:%d/", host, receiver.Listener.Addr().(*net.TCPAddr).Port), body: []byte("{}")}
	}
	for _, host := range []string{
		"127.0.0.1", "127.0.1", "[::1%25lo]", "[2606:4700::1111%25lo]", "１２７.０.０.１", "127。0。0。1", "localhost.",
		"rebound.example", "0x7f000001", "0x7f.0.0.1", // names that are this machine
	} {
		// The webhook's owner does not learn whether a host is private, nor which names exist.
		if got := newSender(false, resolver).send(t.Context(), to(host)); got.failed != outbound.ErrPrivateAddress.Error() || got.status != 0 {
			t.Errorf("%s: %d %q", host, got.status, got.failed)
		}
	}
	wantEqual(t, "connections", connections.Load(), 0)
	away := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") }}
	got := newSender(false, away).send(t.Context(), request{url: "https://redis.internal/"})
	wantEqual(t, "without a server of names", got.failed, "the host cannot be resolved")
	for _, name := range []string{"rebound.example", "0x7f000001", "0x7f.0.0.1"} {
		wantEqual(t, name+", where it is allowed", newSender(true, resolver).send(t.Context(), to(name)).status, http.StatusNotFound)
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

// After 101 the connection is the receiver's own: no deadline of net/http ends what is read from it.
func TestAReceiverThatSwitchesProtocolsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	address := redistest.Serve(t, func(c net.Conn) {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))                  // in case the sender waits
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil { // net/http ends a connection on which a response comes before its request
			t.Error(err)
		}
		_, _ = c.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: anything\r\n\r\n"))
		_, err := io.Copy(io.Discard, c) // until the sender closes it
		ended <- err
	})
	s := newSender(true, nil)
	s.most = time.Second
	got := s.send(t.Context(), request{url: "http://" + address, body: []byte("{}")})
	if got.status != http.StatusSwitchingProtocols || got.failed != "the receiver did not answer 2xx" || got.took > time.Minute/2 {
		t.Errorf("%d %q after %s", got.status, got.failed, got.took)
	}
	if err := <-ended; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
}

// A sender reads no more than it must of a receiver that says that it is not ready, again and again.
func TestEndlessInterimResponsesEnd(t *testing.T) {
	t.Parallel()
	address := redistest.Serve(t, func(c net.Conn) {
		var err error
		for err == nil {
			_, err = c.Write([]byte("HTTP/1.1 103 Early Hints\r\n\r\n"))
		}
		_ = c.Close()
	})
	got := newSender(true, nil).send(t.Context(), request{url: "http://" + address, body: []byte("{}")})
	if got.failed != "the connection failed" || got.took > 10*time.Second {
		t.Errorf("%q after %s", got.failed, got.took)
	}
}
