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
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return dialed{conn, bufio.NewReader(conn)}
}

// ask sends a request and reads the answer.
func (d dialed) ask(t *testing.T) *http.Response {
	t.Helper()
	if _, err := d.Write([]byte(plainRequest)); err != nil {
		t.Fatal(err)
	}
	return d.answer(t)
}

func (d dialed) answer(t *testing.T) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(d.Reader, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	response.Body.Close()
	return response
}

// stopping stops a server and returns once its responses say Connection: close.
func stopping(t *testing.T, r runningServer) (stopped chan error) {
	t.Helper()
	stopped = make(chan error, 1)
	go func() { stopped <- r.Shutdown(t.Context()) }()
	for !r.front.Drain.Begun.Load() {
		time.Sleep(time.Millisecond)
	}
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
	if response := old.ask(t); response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("an old connection: %d, close %v", response.StatusCode, response.Close)
	}
	if response := dial(t, r.address).ask(t); response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("a new connection: %d, close %v", response.StatusCode, response.Close)
	}
	last.ask(t)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", r.address); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
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
			for r.open.Len() == 0 {
				time.Sleep(time.Millisecond)
			}
			stopped := stopping(t, r)
			awaitRefused(t, r.address)
			time.Sleep(20 * conn.DrainStep) // it looks at the connection again and again
			if secure {
				client := tls.Client(connection.Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // any certificate will do
				connection = dialed{client, bufio.NewReader(client)}
			}
			if response := connection.ask(t); response.StatusCode != http.StatusOK || !response.Close {
				t.Errorf("%d, close %v", response.StatusCode, response.Close)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
}

// awaitRefused waits until the address refuses connections.
func awaitRefused(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("it still listens")
		}
	}
}

func TestAServerThatGivesUpSaysHowManyConnectionsAreCut(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{})
	conn := dial(t, r.address)
	if _, err := conn.Write([]byte("GET /heal")); err != nil {
		t.Fatal(err)
	}
	for r.open.Len() == 0 {
		time.Sleep(time.Millisecond)
	}
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.ServeMetrics(listener) }()
	scraper, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer scraper.Close()
	if _, err := io.WriteString(scraper, "GET /metrics HTTP/1.1\r\n"); err != nil { // and no more
		t.Fatal(err)
	}
	for s.metricsHTTP.GetOpenConnectionsCount() == 0 {
		time.Sleep(time.Millisecond)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	_ = s.Shutdown(over)
	if took := time.Since(began); took >= scrapeGrace {
		t.Errorf("it takes %v", took)
	}
	<-served
}
