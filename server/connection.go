package server

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"remit/server/conn"
)

// connection is a client's connection with the memory that its request and its answer reserve.
type connection struct {
	*conn.Conn
	body, answer atomic.Pointer[reservation] // nil for little
	answering    atomic.Bool                 // they are released with the next read
	noRoom       error                       // why the body behind the last header has no place; nil when it has one or needs none
}

// memoryListener makes connections of those that a conn.Set accepts.
type memoryListener struct{ net.Listener }

func (l memoryListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: accepted.(*conn.Conn)}, nil
}

// Read releases what the last request held: fasthttp reads again only when its answer is written.
func (c *connection) Read(buffer []byte) (int, error) {
	c.releasePlaces()
	return c.Conn.Read(buffer)
}

// Close releases whatever the connection holds, a body that has not arrived too.
func (c *connection) Close() error {
	c.answering.Store(true)
	c.releasePlaces()
	return c.Conn.Close()
}

// connectionOf returns the connection that fasthttp serves, below TLS if need be, or nil when it is none of ours.
func connectionOf(served net.Conn) *connection {
	if secured, ok := served.(*tls.Conn); ok {
		served = secured.NetConn()
	}
	c, _ := served.(*connection)
	return c
}

// stopReading makes the read of a body that is under way fail, and with it the request.
func (c *connection) stopReading() { _ = c.SetReadDeadline(time.Unix(1, 0)) }

// leaveUnread notes that a request on the connection was not read whole.
func (c *connection) leaveUnread() {
	if c != nil {
		c.Linger()
	}
}

// bodyRefusal returns why the body behind the last header was not read, or was read no further, if that was for want of
// room. It releases the body's place.
func (c *connection) bodyRefusal() error {
	if c == nil {
		return nil
	}
	err := c.noRoom
	if one := c.body.Swap(nil); one.release() {
		err = one.pool.errFull
	}
	c.noRoom = nil
	return err
}

// bodyArrived keeps the body's place until the request is answered.
func (c *connection) bodyArrived() {
	if c == nil {
		return
	}
	c.noRoom = nil
	if one := c.body.Load(); one != nil {
		one.pin()
		c.answering.Store(true)
	}
}

// releasePlaces gives back what the last request held. fasthttp reads or closes a connection only when the answer is
// written.
func (c *connection) releasePlaces() {
	if c.answering.Load() && c.answering.CompareAndSwap(true, false) { // most requests hold nothing: a load is cheaper
		c.body.Swap(nil).release()
		c.answer.Swap(nil).release()
	}
}
