package conn

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// StopAccepting wakes the listeners, which accept the connections that are already established and then end.
func (s *Set) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for _, l := range s.listeners {
		if timed, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || timed.SetDeadline(time.Unix(1, 0)) != nil {
			_ = l.Close()
		}
	}
}

func (s *Set) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// CloseIdle wakes every connection that waits for a request: it reads one that has arrived, and otherwise ends. Opaque
// connections cannot be woken; CloseIdle closes those that never sent a byte and leaves the others to the HTTP server. It
// spares connections younger than grace that have sent nothing, because their first request may be in transit.
//
// It returns how many listeners, young connections and connections that can be woken are still open. Call it after
// StopAccepting, until that is 0.
func (s *Set) CloseIdle(grace time.Duration) (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open = len(s.listeners)
	for c := range s.open {
		switch {
		case !c.received.Load() && time.Since(c.accepted) < grace:
			open++
		case c.ahead != nil:
			open++
			c.wake()
		case !c.received.Load():
			c.Abort()
		}
	}
	return open
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

// lateConnections accepts at most limit of the connections in the listener's backlog, then closes it. The kernel would reset
// them, although their clients may have sent a request. Without the limit, new connections could keep it accepting forever.
func lateConnections(l net.Listener, limit int) []net.Conn {
	defer l.Close()
	socket, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	var late []net.Conn
	_ = raw.Control(func(fd uintptr) { // an error means that the listener is closed already
		for range limit {
			accepted, _, err := syscall.Accept(int(fd))
			if err != nil {
				return
			}
			file := os.NewFile(uintptr(accepted), "accepted")
			if conn, err := net.FileConn(file); err == nil {
				late = append(late, conn)
			}
			_ = file.Close()
		}
	})
	return late
}
