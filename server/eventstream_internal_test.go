package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"remit/server/conn"
	"remit/server/internal/web"
)

// serveShaped serves on a further listener, whose connections are shaped.
func (r runningServer) serveShaped(t *testing.T, shape func(*net.TCPConn) net.Conn) (address string) {
	t.Helper()
	accepting := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = r.Serve(shapedListener{accepting, shape}) }() // ends with the other
	return accepting.Addr().String()
}

type shapedListener struct {
	net.Listener
	shape func(*net.TCPConn) net.Conn
}

func (l shapedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.shape(conn.(*net.TCPConn)), nil
}

// A client that has gone must not keep a waiter slot or cause polls of Redis, even when nothing is written to it.
func TestAStreamEndsAtOnceWhenItsClientLeaves(t *testing.T) {
	t.Parallel()
	own := selfSigned(t, 1)
	secure := runSecureServer(t, newTLSFiles(t, own), own)
	plain := runServer(t, "redis://"+secure.redis.Addr(), Config{Limits: Limits{Off: true}}).newWaiter(t)
	overTLS := *plain
	overTLS.runningServer = secure.runningServer
	for name, w := range map[string]*waiter{"plain": plain, "TLS": &overTLS} {
		for manner, leave := range map[string]func(tcp *net.TCPConn, conn net.Conn){
			"in order":    func(_ *net.TCPConn, conn net.Conn) { _ = conn.Close() },
			"by a reset":  func(tcp *net.TCPConn, _ net.Conn) { _ = tcp.SetLinger(0); _ = tcp.Close() },
			"half closed": func(tcp *net.TCPConn, _ net.Conn) { _ = tcp.CloseWrite() },
		} {
			tcp := w.dial(w.address)
			conn := tcp
			if w == &overTLS {
				conn = tls.Client(tcp, &tls.Config{RootCAs: secure.trusted, ServerName: "127.0.0.1"})
			}
			events := bufio.NewScanner(w.ask(conn, plain.sinceNow(), acceptStream).Body)
			w.waits(1)
			plain.change("comes")
			w.tells(events, "comes")
			left := time.Now()
			leave(tcp.(*net.TCPConn), conn)
			w.waits(0)
			if took := time.Since(left); took > 7*time.Second { // half of what passes between two comments
				t.Errorf("%s, %s: noticed after %s", name, manner, took)
			}
		}
	}
}

// hastyConn has a twentieth of the time to write.
type hastyConn struct{ net.Conn }

func (c hastyConn) SetWriteDeadline(at time.Time) error {
	return c.Conn.SetWriteDeadline(at.Add(-conn.WriteTimeout * 19 / 20))
}

func TestASlowReaderDelaysNoOtherClientAndIsDisconnected(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	narrow := w.serveShaped(t, func(conn *net.TCPConn) net.Conn {
		_ = conn.SetWriteBuffer(4 << 10)
		return hastyConn{conn}
	})
	for range 600 {
		w.change(strings.Repeat("x", web.MaxRequestIDSize))
	}
	reader := bufio.NewScanner(w.ask(w.dial(w.address), w.sinceNow(), acceptStream).Body)
	conn := w.dial(narrow)
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	slow := w.ask(conn, w.url, acceptStream)
	w.waits(2)
	for i := range 3 {
		w.change(fmt.Sprint("meanwhile-", i))
		w.tells(reader, fmt.Sprint("meanwhile-", i))
	}
	w.waits(1)
	w.change("after")
	w.tells(reader, "after")
	if body, err := io.ReadAll(slow.Body); err == nil || len(body) > 200_000 {
		t.Errorf("the slow reader gets %d bytes and %v", len(body), err)
	}
}

// brokenConn panics in the goroutine of a stream.
type brokenConn struct{ net.Conn }

func (c brokenConn) SetWriteDeadline(at time.Time) error {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.Contains(frame.Function, "records.(*tail[") {
			panic("a broken connection")
		}
	}
	return c.Conn.SetWriteDeadline(at)
}

func TestAPanicInAStreamIsLoggedAndEndsThatStreamAlone(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	w := runServer(t, "", Config{Limits: Limits{Off: true}, Log: slog.New(slog.NewTextHandler(log, nil))}).newWaiter(t)
	broken := w.serveShaped(t, func(conn *net.TCPConn) net.Conn { return brokenConn{conn} })
	other := bufio.NewScanner(w.ask(w.dial(w.address), w.sinceNow(), acceptStream).Body)
	answer := w.ask(w.dial(broken), w.url, acceptStream, "X-Request-Id: the-broken-one")
	w.change("breaks-it")
	w.tells(other, "breaks-it")
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), "agent.created") {
		t.Errorf("the stream that panics says %q, %v", body, err)
	}
	w.waits(1)
	for _, part := range []string{"event stream panicked", "request_id=the-broken-one", "a broken connection", "tail.go"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q: %s", part, log)
		}
	}
	if strings.Contains(log.String(), w.key) {
		t.Error("the log has the API key")
	}
	w.change("after")
	w.tells(other, "after")
}
