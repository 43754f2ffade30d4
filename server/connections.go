package server

import (
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
	open *openConnections

	closed bool // only the goroutine that accepts uses these
	late   []net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.acceptPatiently()
		if err != nil && l.open.isClosing() {
			accepted, err = l.acceptLate()
		}
		if err != nil {
			l.open.forget(l)
			return nil, err
		}
		if conn := l.admit(accepted); conn != nil {
			return conn, nil
		}
		_ = accepted.Close() // without a word, which might have to wait
	}
}

// admit returns nil when there are too many connections, or too many from the address of this one.
func (l *listener) admit(accepted net.Conn) *connection {
	uncount := l.open.countIn(accepted)
	if uncount == nil {
		return nil
	}
	conn := &connection{Conn: accepted, open: l.open, uncount: uncount, since: time.Now()}
	if !l.open.secured {
		conn.ahead = newReadAhead(accepted)
	}
	l.open.add(conn)
	return conn
}

// Close may be called again: a server that stops has closed it before fasthttp does.
func (l *listener) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// acceptPatiently waits while the process or the machine has no room for another connection. fasthttp would end.
func (l *listener) acceptPatiently() (net.Conn, error) {
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
	// Those of one connection, or of the network behind it, and of a firewall that forbids it:
	syscall.EPROTO, syscall.ENOPROTOOPT, syscall.EOPNOTSUPP, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN,
	syscall.EHOSTUNREACH, syscall.EPERM,
}

// openConnections are those of a server, and where they come from.
type openConnections struct {
	secured bool // TLS is spoken on them
	from    *addresses

	mu        sync.Mutex
	open      map[*connection]struct{}
	counted   int // those that are open, and those that are just being closed
	most      int
	listeners []*listener
	closing   bool
}

func newOpenConnections(cfg Config) *openConnections {
	most := cfg.connections()
	return &openConnections{
		secured: cfg.TLS != nil, from: newAddresses(cfg.TrustedProxies, ConnectionsOfOneAddress(most)), most: most,
	}
}

// countIn returns what takes the connection out of the counts again, or nil when there is no place for it.
func (o *openConnections) countIn(accepted net.Conn) (uncount func()) {
	if !o.takePlace() {
		return nil
	}
	address, counts := o.from.countedAs(accepted)
	if counts && !o.from.enter(address) {
		o.freePlace()
		return nil
	}
	return sync.OnceFunc(func() {
		if counts {
			o.from.leave(address)
		}
		o.freePlace()
	})
}

func (o *openConnections) takePlace() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counted >= o.most {
		return false
	}
	o.counted++
	return true
}

func (o *openConnections) freePlace() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counted--
}

func (o *openConnections) add(c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[*connection]struct{}{}
	}
	o.open[c] = struct{}{}
}

func (o *openConnections) remove(c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, c)
}

// forget leaves out a listener that accepts no more.
func (o *openConnections) forget(on *listener) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listeners = slices.DeleteFunc(o.listeners, func(l *listener) bool { return l == on })
}

func (o *openConnections) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open)
}

// listen returns the listener as fasthttp is to have it.
func (o *openConnections) listen(on net.Listener) net.Listener {
	limitSendBuffers(on)
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &listener{Listener: on, open: o}
	o.listeners = append(o.listeners, l)
	return l
}

type connection struct {
	net.Conn
	ahead   *readAhead // nil when it cannot wait without a buffer, or TLS needs one
	open    *openConnections
	spoke   atomic.Bool
	foreign bool        // its first byte is none of HTTP
	since   time.Time   // when it was accepted
	uncount func()      // takes it out of the counts
	unread  atomic.Bool // set by the goroutine that serves the connection; a shutdown may close it from another

	body, answer atomic.Pointer[reservation] // what the request and its answer hold; nil for little
	answering    atomic.Bool                 // they are released with the next read
	noRoom       error                       // why the body behind the last header has no place; nil when it has one or needs none

	waiting sync.Mutex
	waits   bool // for a request
	left    bool // by a server that stops
}

// Read notes the first byte.
func (c *connection) Read(buffer []byte) (int, error) {
	c.releasePlaces()
	n, err := c.read(buffer)
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
		c.foreign = !c.open.secured && !startsRequest(buffer[0])
	}
	return n, err
}

func (c *connection) read(buffer []byte) (int, error) {
	switch {
	case c.foreign:
		return 0, errForeign
	case c.ahead.holds():
		return c.ahead.give(buffer), nil
	case len(buffer) == 1 && c.ahead != nil:
		if err := c.awaitRequest(); err != nil {
			return 0, err
		}
		return c.ahead.give(buffer), nil
	}
	return c.Conn.Read(buffer)
}

// leaveUnread notes that a request on the connection was not read whole.
func leaveUnread(conn net.Conn) {
	if c := connectionOf(conn); c != nil {
		c.unread.Store(true)
	}
}

// Close lets the peer read the last answer first.
func (c *connection) Close() error {
	c.open.remove(c)
	c.answering.Store(true) // whatever it holds, a body that has not arrived too
	c.releasePlaces()
	defer c.uncount()
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.unread.CompareAndSwap(true, false) && half.CloseWrite() == nil {
		c.discard()
	}
	return c.Conn.Close()
}

func (c *connection) discard() {
	if c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	buffer := readAheads.Get().(*[readAheadSize]byte)
	defer readAheads.Put(buffer)
	for left := lingerBytes; left > 0; {
		n, err := c.Conn.Read(buffer[:])
		if err != nil {
			return
		}
		left -= n
	}
}
