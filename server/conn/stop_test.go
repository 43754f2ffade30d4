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
	if got := <-left; got != (outcome{"x", nil}) {
		t.Errorf("read %v, want the byte that had arrived", got)
	}
}

func TestAConnectionThatIsLeftWithoutARequestEnds(t *testing.T) {
	t.Parallel()
	accepted, _ := newConnections(t)
	left := readBeside(accepted, 1)
	await(t, "it ends", func() bool {
		accepted.wake()
		return len(left) > 0
	})
	if got := <-left; got != (outcome{"", io.EOF}) {
		t.Errorf("read %v, want EOF", got)
	}
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
		if got := read(t, conn, 1); got != "x" {
			t.Errorf("read %q", got)
		}
	}
	if conn, err := accepting.Accept(); err == nil {
		conn.Close()
		t.Error("a connection that no client made is accepted")
	}
	if left := set.CloseIdle(0); left != clients {
		t.Errorf("%d connections and listeners are open, want the %d connections", left, clients)
	}
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
	if left := set.CloseIdle(0); left != 0 {
		t.Errorf("%d listeners are open", left)
	}
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
	if len(late) != 2 {
		t.Errorf("%d are taken, want 2", len(late))
	}
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
	if open := set.CloseIdle(time.Second); open != 1 {
		t.Errorf("%d are open when it is old", open)
	}
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
