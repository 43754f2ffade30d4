package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// connectFrom opens a connection from an address of this machine and asks over it; it returns whether it was answered.
func connectFrom(t *testing.T, r runningServer, source string) (net.Conn, bool) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: remit\r\n\r\n"); err != nil {
		return conn, false
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return conn, err == nil && answer.StatusCode == 200
}

// bound lets an address have so many.
func (a *addresses) bound(most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.most = most
}

// holdAll opens as many connections from an address as it may have, and one more, which must not be answered.
func holdAll(t *testing.T, r runningServer, source string, most int) (held []net.Conn) {
	t.Helper()
	for range most {
		conn, answered := connectFrom(t, r, source)
		if !answered {
			t.Fatalf("connection %d of %d is not answered", len(held)+1, most)
		}
		held = append(held, conn)
	}
	if _, answered := connectFrom(t, r, source); answered {
		t.Error("one more is answered")
	}
	return held
}

func TestNoAddressCanTakeAllConnections(t *testing.T) {
	t.Parallel()
	const most = 3
	r := runServer(t, "", Config{})
	r.open.from.bound(most)
	held := holdAll(t, r, "127.0.0.2", most)
	if _, answered := connectFrom(t, r, "127.0.0.3"); !answered {
		t.Error("another address is not answered")
	}
	_ = held[0].Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, answered := connectFrom(t, r, "127.0.0.2"); answered {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a place that was given free is not given again")
		}
	}
}

func TestATrustedProxyMayHaveAllConnections(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})
	r.open.from.bound(1)
	for range 5 {
		if _, answered := connectFrom(t, r, "127.0.0.2"); !answered {
			t.Error("a trusted proxy is not answered")
		}
	}
	holdAll(t, r, "127.0.0.3", 1)
}

func TestConnectionsAreForgottenWithTheLast(t *testing.T) {
	t.Parallel()
	a := newAddresses(nil, 2)
	address := netip.MustParseAddr("192.0.2.1")
	for range 2 {
		if !a.enter(address) {
			t.Fatal("no place")
		}
	}
	if a.enter(address) {
		t.Error("one too many")
	}
	a.leave(address)
	a.leave(address)
	if len(a.count) != 0 {
		t.Errorf("%d addresses are counted still", len(a.count))
	}
}
