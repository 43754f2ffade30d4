package conn

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"
)

// listener accepts connections into a set.
type listener struct {
	*accepting
	set *Set

	closed bool // only the goroutine that accepts uses these two
	late   []net.Conn
}

// Listen returns a listener whose connections are *Conn and belong to the set. When a limit is reached it closes a new
// connection without a response, because writing one might block. It keeps accepting while the process or the system is out
// of descriptors or memory, and after StopAccepting ends with io.EOF.
func (s *Set) Listen(on net.Listener) net.Listener {
	limitSendBuffers(on)
	return &listener{accepting: s.addListener(on), set: s}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.acceptWithRetry()
		if err != nil && l.set.isClosing() {
			accepted, err = l.acceptLate()
		}
		if err != nil {
			l.set.removeListener(l.accepting)
			return nil, err
		}
		if conn := l.register(accepted); conn != nil {
			return conn, nil
		}
		_ = accepted.Close()
	}
}

// register returns nil when a limit is reached.
func (l *listener) register(accepted net.Conn) *Conn {
	release := l.set.acquire(accepted)
	if release == nil {
		return nil
	}
	conn := &Conn{Conn: accepted, sniffs: !l.set.opaque, release: release, accepted: time.Now()}
	conn.reading.socket = accepted.SetReadDeadline
	conn.leave = func() { l.set.remove(conn) }
	if !l.set.opaque {
		conn.ahead = newReadAhead(accepted)
	}
	l.set.add(conn)
	return conn
}

// acceptLate returns the late connections one by one, and then io.EOF, which ends the HTTP server's accept loop.
func (l *listener) acceptLate() (net.Conn, error) {
	if !l.closed {
		l.closed, l.late = true, lateConnections(l.Listener, l.set.limit)
	}
	if len(l.late) == 0 {
		return nil, io.EOF
	}
	conn := l.late[0]
	l.late = l.late[1:]
	return conn, nil
}

// Close may be called twice: StopAccepting closes the listener before the server does.
func (l *listener) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

const (
	minAcceptWait = 5 * time.Millisecond
	maxAcceptWait = time.Second
)

// acceptWithRetry waits while the process or the system has no room for another connection. An HTTP server would end.
func (l *listener) acceptWithRetry() (net.Conn, error) {
	for wait := minAcceptWait; ; wait = min(2*wait, maxAcceptWait) {
		accepted, err := l.Listener.Accept()
		if err == nil || !slices.ContainsFunc(transient, func(e error) bool { return errors.Is(err, e) }) {
			return accepted, err
		}
		time.Sleep(wait)
	}
}

// transient are the errors of accept(2) that pass.
var transient = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR,
	// Errors of one connection, of the network behind it, or of a firewall that forbids it:
	syscall.EPROTO, syscall.ENOPROTOOPT, syscall.EOPNOTSUPP, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN,
	syscall.EHOSTUNREACH, syscall.EPERM,
}

// sendBuffer is how many bytes of responses the kernel buffers for a connection. Its default would be 4 MB, as much as the
// largest response, and a container's memory limit counts those bytes too.
const sendBuffer = 256 << 10

// limitSendBuffers sets the send buffer of a listener, which the connections it accepts inherit. A listener without a socket,
// or a system that refuses, keeps the default.
func limitSendBuffers(on net.Listener) {
	of, ok := on.(syscall.Conn)
	if !ok {
		return
	}
	if socket, err := of.SyscallConn(); err == nil {
		_ = socket.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBuffer)
		})
	}
}
