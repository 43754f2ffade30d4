package server

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A connection that is closed with unread bytes in it is reset, and the reset can overtake the answer. So after an
// answer to a request that was not read whole, the rest is read and thrown away, within these bounds.
const (
	lingerTime  = time.Second
	lingerBytes = 8 << 20
)

// listener gives fasthttp connections that close as connection does.
type listener struct {
	net.Listener
	silent *silentConnections
	from   *addresses
}

func (l listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.acceptPatiently()
		if err != nil {
			return nil, err
		}
		if conn := l.admit(accepted); conn != nil {
			return conn, nil
		}
		_ = accepted.Close() // without a word, which might have to wait
	}
}

// admit returns nil when the connection's address has too many.
func (l listener) admit(accepted net.Conn) *connection {
	conn := &connection{Conn: accepted, ahead: newReadAhead(accepted), silent: l.silent}
	if address, counts := l.from.countedAs(accepted); counts {
		if !l.from.enter(address) {
			return nil
		}
		conn.uncount = sync.OnceFunc(func() { l.from.leave(address) })
	}
	l.silent.add(conn)
	return conn
}

// acceptPatiently waits while the process or the machine has no room for another connection. fasthttp would end.
func (l listener) acceptPatiently() (net.Conn, error) {
	for wait := minAcceptWait; ; wait = min(2*wait, maxAcceptWait) {
		accepted, err := l.Listener.Accept()
		if err == nil || !slices.ContainsFunc(noRoom, func(e error) bool { return errors.Is(err, e) }) {
			return accepted, err
		}
		time.Sleep(wait)
	}
}

const (
	minAcceptWait = 5 * time.Millisecond
	maxAcceptWait = time.Second
)

// noRoom are the errors of accept(2) that pass.
var noRoom = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR,
}

// silentConnections are those that have not sent a byte. fasthttp's shutdown waits for each of them to time out, so
// they are closed before it.
type silentConnections struct {
	mu      sync.Mutex
	open    map[*connection]struct{}
	closing bool
}

func (s *silentConnections) add(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = c.Conn.Close() // fasthttp, which finds it closed, closes it again
		return
	}
	if s.open == nil {
		s.open = map[*connection]struct{}{}
	}
	s.open[c] = struct{}{}
}

func (s *silentConnections) remove(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// close closes all that are silent now and all that will be accepted.
func (s *silentConnections) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for c := range s.open {
		_ = c.Conn.Close()
	}
	s.open = nil
}

type connection struct {
	net.Conn
	ahead   *readAhead // nil when it cannot wait without a buffer
	silent  *silentConnections
	spoke   atomic.Bool
	uncount func()      // nil when it does not count
	unread  atomic.Bool // set by the goroutine that serves the connection; a shutdown may close it from another
}

// Read notes the first byte.
func (c *connection) Read(buffer []byte) (int, error) {
	n, err := c.read(buffer)
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
		c.silent.remove(c)
	}
	return n, err
}

func (c *connection) read(buffer []byte) (int, error) {
	switch {
	case c.ahead.holds():
		return c.ahead.give(buffer), nil
	case len(buffer) == 1 && c.ahead != nil:
		if err := c.ahead.fill(); err != nil {
			return 0, err
		}
		return c.ahead.give(buffer), nil
	}
	return c.Conn.Read(buffer)
}

// leaveUnread notes that a request on the connection was not read whole.
func leaveUnread(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if c, ok := conn.(*connection); ok {
		c.unread.Store(true)
	}
}

// Close lets the peer read the last answer first.
func (c *connection) Close() error {
	c.silent.remove(c)
	if c.uncount != nil {
		defer c.uncount()
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.unread.CompareAndSwap(true, false) && half.CloseWrite() == nil {
		c.discard()
	}
	return c.Conn.Close()
}

func (c *connection) discard() {
	if c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for left := lingerBytes; left > 0; {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		left -= n
	}
}
