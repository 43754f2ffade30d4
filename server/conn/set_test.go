package conn

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
)

// It is counted until its last byte is read, and then no more, however often it is closed.
func TestAConnectionIsCountedUntilItIsClosed(t *testing.T) {
	t.Parallel()
	set := newSet()
	accepted, _ := newConnectionsOf(t, set)
	for _, want := range []int{1, 0, 0} {
		wantEqual(t, "connections that are counted", set.counted, want)
		_ = accepted.Close()
	}
}

// farEnd is a connection of which only the other end's address is asked.
type farEnd struct {
	net.Conn
	address string
}

func (p farEnd) RemoteAddr() net.Addr { return peer(p.address) }

// That a connection without a place is closed, and the place of a closed one given again, the server's tests show.
func TestNoAddressCanTakeAllConnections(t *testing.T) {
	t.Parallel()
	s := NewSet(Config{Limit: 10, LimitPerAddress: 2, Proxies: Proxies{netip.MustParsePrefix("192.0.2.7/32")}})
	var held []func()
	for _, step := range []struct {
		from  string
		taken bool
	}{
		{"192.0.2.1", true}, {"192.0.2.1", true}, {"192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8:0:1::1", true}, {"2001:db8:0:1::2", true}, {"2001:db8:0:1:ffff::1", false}, {"2001:db8:0:2::1", true},
		{"192.0.2.7", true}, {"192.0.2.7", true}, {"192.0.2.7", true}, {"192.0.2.7", true}, // a trusted proxy
		{"192.0.2.7", false}, {"192.0.2.3", false}, // the limit of all
	} {
		release := s.acquire(farEnd{address: step.from})
		if (release != nil) != step.taken {
			t.Errorf("connection %d, of %s: accepted %t", len(held)+1, step.from, release != nil)
		}
		if release != nil {
			held = append(held, release)
		}
	}
	held[0]()
	held[0]() // counts once
	again := s.acquire(farEnd{address: "192.0.2.1"})
	if again == nil || s.acquire(farEnd{address: "192.0.2.1"}) != nil {
		t.Error("a free place is not given again, once")
	}
	for _, release := range append(held, again) {
		release()
	}
	if len(s.byAddress) != 0 || s.counted != 0 {
		t.Errorf("%d addresses and %d connections are counted still", len(s.byAddress), s.counted)
	}
}

// fullListener has no room at first.
type fullListener struct {
	net.Listener
	refusals []error
}

func (l *fullListener) Accept() (net.Conn, error) {
	if len(l.refusals) == 0 {
		return nil, net.ErrClosed
	}
	err := l.refusals[0]
	l.refusals = l.refusals[1:]
	return nil, err
}

func TestAcceptingOutlastsAFullProcess(t *testing.T) {
	t.Parallel()
	full := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	inner := &fullListener{refusals: []error{full, full, syscall.ECONNABORTED,
		syscall.EPROTO, syscall.ENETDOWN, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EOPNOTSUPP, syscall.EPERM}}
	if _, err := newSet().Listen(inner).Accept(); !errors.Is(err, net.ErrClosed) || len(inner.refusals) != 0 {
		t.Errorf("it ended with %v, %d refusals before the end", err, len(inner.refusals))
	}
}
