package server

import (
	"bufio"
	"context"
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
	accepting, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
			w.ask(conn, plain.sinceNow(), acceptStream)
			w.waits(1)
			left := time.Now()
			leave(tcp.(*net.TCPConn), conn)
			w.waits(0)
			if took := time.Since(left); took > 2*time.Second {
				t.Errorf("%s, %s: noticed after %s", name, manner, took)
			}
		}
	}
}

// This one does not run beside others: it counts goroutines.
func TestAClientThatIsGoneLeavesNothingBehind(t *testing.T) {
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	most := 0
	cycle := func() {
		t.Helper()
		var conns []net.Conn
		for range 8 {
			streamed, polled := w.dial(w.address), w.dial(w.address)
			w.ask(streamed, w.sinceNow(), acceptStream)
			w.wait(polled)
			conns = append(conns, streamed, polled)
		}
		w.waits(16)
		most = servingGoroutines()
		for _, conn := range conns {
			_ = conn.Close()
		}
		w.waits(8)
		w.change("for-a-waiter-in-vain")
		w.waits(0)
	}
	before := servingGoroutines()
	cycle()
	if most < before+8*4 { // serving, streaming and noticing a stream, and serving who waits
		t.Errorf("at the most %d goroutines, before %d: the test proves nothing", most, before)
	}
	w.eventually("no goroutine is left", func() bool { return servingGoroutines() <= before })
}

// servingGoroutines counts those that serve a connection, a stream or a waiting request.
func servingGoroutines() int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	count := 0
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		for _, frame := range []string{"records.(*tail[", "web.(*Stream)", "fasthttp.NewStreamReader", "fasthttp.(*Server).serveConn(", "redisstore.(*Store)", "records.(*Reader)"} {
			if strings.Contains(stack, frame) {
				count++
				break
			}
		}
	}
	return count
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

// fasthttp sets one deadline for a response. A stream outlives it, and later events must arrive complete.
func TestAStreamOlderThanTheWriteTimeoutSendsManyEventsAndEndsInOrder(t *testing.T) {
	t.Parallel()
	w := runServer(t, "", Config{Limits: Limits{Off: true}}).newWaiter(t)
	accepted := make(chan net.Conn, 1)
	address := w.serveShaped(t, func(conn *net.TCPConn) net.Conn {
		accepted <- conn
		return conn
	})
	const pending = 100
	access := w.exchange(t, w.client, w.agent, w.secret).is(t, 200, "").text(t, "access_token")
	session := w.asKey("/sessions", `{"agent_id":"`+w.agent+`"}`).is(t, 201, "").text(t, "id")
	for range pending {
		w.post(t, w.client, "/v1/transactions", `{"action_type":"a","pre_state":{},"session_id":"`+session+`"}`,
			"Authorization", "Bearer "+access).is(t, 201, "")
	}
	events := bufio.NewScanner(w.ask(w.dial(address), w.sinceNow(), acceptStream).Body)
	if !events.Scan() || events.Text() != ":" {
		t.Fatalf("%q, %v; want a comment", events.Text(), events.Err())
	}
	conn := <-accepted
	past := time.Now().Add(-time.Second) // the deadline of what was written, once time has gone by
	_ = conn.SetWriteDeadline(past)
	w.asKey("/sessions/"+session+"/end", `{}`, "X-Request-Id", "end").is(t, 200, "")
	for range pending + 1 {
		w.tells(events, "end")
	}
	_ = conn.SetWriteDeadline(past)
	w.rotateKey()
	w.change("unseen")
	if events.Scan() && (events.Text() != "" || events.Scan()) || events.Err() != nil {
		t.Errorf("%q, %v; want the end", events.Text(), events.Err())
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

func TestAStreamOverTLSGoesOnAndEndsInOrder(t *testing.T) {
	t.Parallel()
	own := selfSigned(t, 1)
	s := runSecureServer(t, newTLSFiles(t, own), own)
	w := runServer(t, "redis://"+s.redis.Addr(), Config{Limits: Limits{Off: true}}).newWaiter(t)
	conn, err := tls.Dial("tcp", s.address, s.asClient())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	events := bufio.NewScanner(w.ask(conn, w.sinceNow(), acceptStream).Body)
	for i := range 3 {
		w.change(fmt.Sprint("change-", i))
		w.tells(events, fmt.Sprint("change-", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	for events.Scan() {
		if text := events.Text(); text != "" && text != ":" {
			t.Errorf("told %q", text)
		}
	}
	if _, err := conn.Read(make([]byte, 1)); events.Err() != nil || err != io.EOF {
		t.Errorf("the stream ended with %v, the connection with %v", events.Err(), err)
	}
}
