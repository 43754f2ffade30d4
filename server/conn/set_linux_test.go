package conn

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// serve answers 200 to every request over the connections of a set, until the test ends.
func serve(t *testing.T, config Config) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(NewSet(config).Listen(listener)) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return listener.Addr().String()
}

// connectFrom sends a request from an address of this machine, and reports whether it got a response.
func connectFrom(t *testing.T, address, source string) (net.Conn, bool) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
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

// holdAll opens as many connections from an address as it may have, and one more, which must not be answered.
func holdAll(t *testing.T, address, source string, most int) (held []net.Conn) {
	t.Helper()
	for range most {
		conn, answered := connectFrom(t, address, source)
		if !answered {
			t.Fatalf("connection %d of %d is not answered", len(held)+1, most)
		}
		held = append(held, conn)
	}
	if _, answered := connectFrom(t, address, source); answered {
		t.Error("one more is answered")
	}
	return held
}

func TestNoAddressCanTakeAllConnections(t *testing.T) {
	t.Parallel()
	const most = 3
	address := serve(t, Config{Limit: 100, LimitPerAddress: most})
	held := holdAll(t, address, "127.0.0.2", most)
	if _, answered := connectFrom(t, address, "127.0.0.3"); !answered {
		t.Error("another address is not answered")
	}
	_ = held[0].Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, answered := connectFrom(t, address, "127.0.0.2"); answered {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a place that was given free is not given again")
		}
	}
}

func TestATrustedProxyMayHaveAllConnections(t *testing.T) {
	t.Parallel()
	address := serve(t, Config{Limit: 100, LimitPerAddress: 1, Proxies: Proxies{netip.MustParsePrefix("127.0.0.2/32")}})
	for range 5 {
		if _, answered := connectFrom(t, address, "127.0.0.2"); !answered {
			t.Error("a trusted proxy is not answered")
		}
	}
	holdAll(t, address, "127.0.0.3", 1)
}

func TestConnectionsAreForgottenWithTheLast(t *testing.T) {
	t.Parallel()
	s := NewSet(Config{Limit: 9, LimitPerAddress: 2})
	from := farEnd{address: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}
	first, second := s.acquire(from), s.acquire(from)
	if first == nil || second == nil {
		t.Fatal("no place")
	}
	if s.acquire(from) != nil {
		t.Error("one too many")
	}
	first()
	second()
	if len(s.byAddress) != 0 || s.counted != 0 {
		t.Errorf("%d addresses and %d connections are counted still", len(s.byAddress), s.counted)
	}
}

// farEnd is a connection of which only the other end's address is asked.
type farEnd struct {
	net.Conn
	address net.Addr
}

func (p farEnd) RemoteAddr() net.Addr { return p.address }
