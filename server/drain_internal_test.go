package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"remit/server/conn"
)

const plainRequest = "GET /healthz HTTP/1.1\r\nHost: remit\r\n\r\n"

// dialed is a client's end of a connection, read as HTTP.
type dialed struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, address string) dialed {
	t.Helper()
	conn := sendFrom(t, "", address, "")
	return dialed{conn, bufio.NewReader(conn)}
}

// ask sends a request and reads the answer.
func (d dialed) ask(t *testing.T) *http.Response {
	t.Helper()
	must(io.WriteString(d, plainRequest))(t)
	response := must(http.ReadResponse(d.Reader, nil))(t)
	response.Body.Close()
	return response
}

// wantLast asks, and fails the test unless the answer says that it is the last of the connection.
func (d dialed) wantLast(t *testing.T) {
	t.Helper()
	if response := d.ask(t); response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("answered %d, close %v", response.StatusCode, response.Close)
	}
}

// stopping stops a server and returns once its responses say Connection: close.
func stopping(t *testing.T, r runningServer) (stopped chan error) {
	t.Helper()
	stopped = make(chan error, 1)
	go func() { stopped <- r.Shutdown(t.Context()) }()
	await(t, "it drains", r.front.Drain.Begun.Load)
	return stopped
}

func TestAServerThatStopsSaysSoWithEveryAnswer(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{})
	r.front.Drain.Most, r.front.Drain.Quiet = 20*time.Second, 20*time.Second // it ends with its last connection
	old, last := dial(t, r.address), dial(t, r.address)
	for _, conn := range []dialed{old, last} {
		if response := conn.ask(t); response.Close {
			t.Error("a connection is closed before the service stops")
		}
	}
	stopped := stopping(t, r)
	old.wantLast(t)
	dial(t, r.address).wantLast(t)
	last.ask(t)
	must(0, <-stopped)(t)
	awaitRefused(t, r.address)
}

// The client has connected, and its first bytes are still in transit when the server stops.
func TestANewConnectionHasTimeToSendItsFirstRequest(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"plain": false, "over TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runServer(t, "", spoken(t, secure))
			r.front.Drain.Most, r.front.Drain.Quiet = time.Millisecond, 20*time.Second
			connection := dial(t, r.address)
			await(t, "it is accepted", func() bool { return r.open.Len() > 0 })
			stopped := stopping(t, r)
			awaitRefused(t, r.address)
			time.Sleep(20 * conn.DrainStep) // it looks at the connection again and again
			if secure {
				client := tls.Client(connection.Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // any certificate will do
				connection = dialed{client, bufio.NewReader(client)}
			}
			connection.wantLast(t)
			must(0, <-stopped)(t)
		})
	}
}

// awaitRefused waits until the address refuses connections.
func awaitRefused(t *testing.T, address string) {
	t.Helper()
	await(t, "it listens no more", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

func TestAServerThatGivesUpSaysHowManyConnectionsAreCut(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{})
	conn := dial(t, r.address)
	must(io.WriteString(conn, "GET /heal"))(t)
	await(t, "it is accepted", func() bool { return r.open.Len() > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := r.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "1 connections are cut") {
		t.Errorf("it ends with %v", err)
	}
	_ = conn.Close()
}

// spoken is the configuration of a server that speaks HTTP plainly or over TLS.
func spoken(t *testing.T, secure bool) Config {
	t.Helper()
	if !secure {
		return Config{}
	}
	return Config{TLS: &tls.Config{Certificates: []tls.Certificate{selfSigned(t, 1).asClient()}}}
}

func TestAStopWhoseTimeIsOverWaitsForNoScrape(t *testing.T) {
	t.Parallel()
	s := New(Config{Log: slog.New(slog.DiscardHandler), MetricsApart: true})
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- s.ServeMetrics(listener) }()
	sendFrom(t, "", listener.Addr().String(), "GET /metrics HTTP/1.1\r\n") // and no more
	await(t, "it is accepted", func() bool { return s.metricsHTTP.GetOpenConnectionsCount() > 0 })
	over, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	_ = s.Shutdown(over)
	if took := time.Since(began); took >= scrapeGrace {
		t.Errorf("it takes %v", took)
	}
	<-served
}
