package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// bound lets a server have so many connections.
func (o *openConnections) bound(most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most = most
}

// hold connects and says nothing.
func hold(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(8 * time.Second)) // less than the read timeout
	return conn
}

func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("read %d bytes, %v", n, err)
	} else if timed, ok := err.(net.Error); ok && timed.Timeout() {
		t.Error("it is left waiting")
	}
}

// An answer would have to wait for a client that may never speak, and with TLS it does.
func TestConnectionsWithoutAPlaceAreClosedWithoutAWordAndAPlaceIsGivenAgain(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"plain": false, "over TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runServer(t, "", spoken(t, secure))
			const most = 2
			r.open.bound(most)
			var held []net.Conn
			for range most {
				held = append(held, hold(t, r.address))
			}
			for range 3 {
				wantClosed(t, hold(t, r.address))
			}
			_ = held[0].Close()
			for deadline := time.Now().Add(20 * time.Second); !isServed(r.address, secure); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("a place that was given free is not given again")
				}
			}
			if most := r.http.Concurrency; most <= maxConnections {
				t.Errorf("fasthttp refuses the connection after %d, in words", most)
			}
		})
	}
}

func isServed(address string, secure bool) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // whoever it is, it serves
	}
	if _, err := io.WriteString(conn, plainRequest); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// It is counted until its last byte is read, and then no more, however often it is closed.
func TestAConnectionIsCountedUntilItIsClosed(t *testing.T) {
	t.Parallel()
	accepted, _ := newConnections(t)
	for _, want := range []int{1, 0, 0} {
		if accepted.open.counted != want {
			t.Errorf("%d are counted, want %d", accepted.open.counted, want)
		}
		_ = accepted.Close()
	}
}
