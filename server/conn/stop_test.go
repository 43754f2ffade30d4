package conn

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// Nothing reads the connection while its request arrives, as on a busy machine; the server stops at that moment.
func TestARequestThatHasArrivedIsReadFromAConnectionThatIsLeft(t *testing.T) {
	t.Parallel()
	accepted, client := newConnections(t)
	accepted.waiting.Lock() // it cannot begin to wait
	left := readBeside(accepted, 1)
	must(client.Write([]byte("x")))(t)
	accepted.waits, accepted.woken = true, true
	_ = accepted.Conn.SetReadDeadline(time.Unix(1, 0)) // what wake does
	accepted.waiting.Unlock()
	wantEqual(t, "read", <-left, (outcome{"x", nil}))
}

func TestAConnectionThatIsLeftWithoutARequestEnds(t *testing.T) {
	t.Parallel()
	accepted, _ := newConnections(t)
	left := readBeside(accepted, 1)
	await(t, "it ends", func() bool {
		accepted.wake()
		return len(left) > 0
	})
	wantEqual(t, "read", <-left, (outcome{"", io.EOF}))
}

// A connection that the kernel has established but the server has not accepted is not reset with the request in it.
func TestConnectionsThatWaitToBeAcceptedAreAcceptedBeforeTheListenerCloses(t *testing.T) {
	t.Parallel()
	inner := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	const clients = 5
	for range clients {
		must(dial(t, inner.Addr().String()).Write([]byte("x")))(t)
	}
	set := newSet()
	accepting := set.Listen(inner)
	set.StopAccepting()
	for n := range clients {
		conn, err := accepting.Accept()
		if err != nil {
			t.Fatalf("after %d connections: %v", n, err)
		}
		defer conn.Close()
		wantEqual(t, "read", read(t, conn, 1), "x")
	}
	if conn, err := accepting.Accept(); err == nil {
		conn.Close()
		t.Error("a connection that no client made is accepted")
	}
	wantEqual(t, "connections and listeners are open", set.CloseIdle(0), clients)
}

// A service may have to stop before it has begun to listen.
func TestAListenerThatComesAfterTheStopEndsAtOnce(t *testing.T) {
	t.Parallel()
	inner := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	set := newSet()
	set.StopAccepting()
	if conn, err := set.Listen(inner).Accept(); err != io.EOF {
		t.Errorf("accepted %v: %v", conn, err)
	}
	wantEqual(t, "listeners are open", set.CloseIdle(0), 0)
}

// New ones come as long as it takes them.
func TestAServerThatStopsTakesNoMoreLateConnectionsThanItMayHave(t *testing.T) {
	t.Parallel()
	inner := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	for range 3 {
		dial(t, inner.Addr().String())
	}
	late := lateConnections(inner, 2)
	for _, conn := range late {
		defer conn.Close()
	}
	wantEqual(t, "connections that are taken", len(late), 2)
}

func TestASilentConnectionThatIsNotNewIsClosedByAServerThatStops(t *testing.T) {
	t.Parallel()
	set := newSet()
	accepted, _ := newConnectionsOf(t, set)
	accepted.accepted = time.Now().Add(-time.Minute)
	accepted.ahead = nil                             // as with TLS
	if open := set.CloseIdle(time.Hour); open != 2 { // with the listener
		t.Errorf("%d are open while it is new", open)
	}
	wantEqual(t, "connections that are open when it is old", set.CloseIdle(time.Second), 1)
	if _, err := accepted.Conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it is not closed: %v", err)
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	client := must(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
