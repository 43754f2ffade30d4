package conn

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Closing a connection with unread bytes resets it, and the reset can overtake the response. So after a response to a
// request that was not read completely, Close reads and discards the rest, within these bounds.
const (
	lingerTime  = time.Second
	lingerBytes = 8 << 20
)

// Conn is an accepted connection of a Set. One goroutine at a time may read from it.
type Conn struct {
	net.Conn
	ahead    *readAhead // nil when the connection has no socket or is opaque
	sniffs   bool       // detects the protocol by the first byte
	received atomic.Bool
	notHTTP  bool        // its first byte cannot start a request
	accepted time.Time   // when
	leave    func()      // takes it out of its set
	release  func()      // uncounts it, once its socket is closed
	unread   atomic.Bool // set by the goroutine that serves the connection; a shutdown may close it from another

	reading deadline

	waiting sync.Mutex
	waits   bool // for the first byte of a request
	woken   bool // by a set that stops
}

// Read reads from the connection. It returns an error after a first byte that cannot start an HTTP request, unless the set
// is opaque.
func (c *Conn) Read(buffer []byte) (int, error) {
	n, err := c.read(buffer)
	if n > 0 && !c.received.Load() {
		c.received.Store(true)
		c.notHTTP = c.sniffs && !startsRequest(buffer[0])
	}
	return n, err
}

func (c *Conn) read(buffer []byte) (int, error) {
	switch {
	case c.notHTTP:
		return 0, errNotHTTP
	case c.ahead.buffered():
		return c.ahead.consume(buffer), nil
	case len(buffer) == 1 && c.ahead != nil:
		if err := c.awaitRequest(); err != nil {
			return 0, err
		}
		return c.ahead.consume(buffer), nil
	}
	return c.readSocket(buffer)
}

func (c *Conn) readSocket(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	for c.reading.extended(err) {
		n, err = c.Conn.Read(buffer)
	}
	return n, err
}

// awaitRequest waits for the first byte of a request. When the set stops it returns io.EOF, unless a byte has arrived.
func (c *Conn) awaitRequest() error {
	c.setWaiting(true)
	err := c.ahead.fill()
	for c.reading.extended(err) {
		err = c.ahead.fill()
	}
	if woken := c.setWaiting(false); woken && errors.Is(err, os.ErrDeadlineExceeded) {
		return c.ahead.fillNow()
	}
	return err
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.reading.set(t) }

func (c *Conn) setWaiting(waits bool) (woken bool) {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	c.waits = waits
	return c.woken
}

// wake makes a Read that waits for a request check once more whether one has arrived, and then end.
func (c *Conn) wake() {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	if c.waits {
		c.woken = true
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

// Linger makes Close discard what the client still sends, for at most a second and 8 MiB. Call it when a request is answered
// without being read completely.
func (c *Conn) Linger() { c.unread.Store(true) }

// Close lets the peer read the last response first; see Linger.
func (c *Conn) Close() error {
	c.leave()
	defer c.release()
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.unread.CompareAndSwap(true, false) && half.CloseWrite() == nil {
		c.discard()
	}
	return c.Conn.Close()
}

// Abort closes the socket at once: a response that is being written ends there. Close must still be called.
func (c *Conn) Abort() { _ = c.Conn.Close() }

func (c *Conn) discard() {
	if c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	buffer := readAheads.Get().(*[readAheadSize]byte)
	defer readAheads.Put(buffer)
	for left := lingerBytes; left > 0; {
		n, err := c.readSocket(buffer[:])
		if err != nil {
			return
		}
		left -= n
	}
}

// A client that speaks TLS to a plain port sends its ClientHello and waits; clients of other protocols do the same. Their
// bytes seldom contain a line end, so an HTTP server would wait for one until its read timeout. The first byte is enough to
// recognise them: after it Read fails, and the server answers the bytes it has.

var errNotHTTP = errors.New("the first byte cannot start an HTTP request")

// startsRequest reports whether an HTTP request can start with the byte: one of a method name, or of an empty line before
// it (RFC 9112 §2.2).
func startsRequest(first byte) bool {
	return first > ' ' && first <= '~' || first == '\r' || first == '\n'
}
