package server

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"remit/server/conn"
)

// connection is a client connection with the memory that its request and its response reserve.
type connection struct {
	*conn.Conn
	body, answer atomic.Pointer[reservation] // nil when they are small
	answering    atomic.Bool                 // the next read releases them
	forPages     bool                        // it came to the listener of ServePages
	noRoom       error                       // why the body behind the last header has no reservation; nil when it has one or needs none
}

// memoryListener turns the connections of a conn.Set into connections with reservations.
type memoryListener struct {
	net.Listener

	forPages bool
}

func (l memoryListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: accepted.(*conn.Conn), forPages: l.forPages}, nil
}

// Read releases what the last request reserved: fasthttp reads again only after it has written the response.
func (c *connection) Read(buffer []byte) (int, error) {
	c.releaseReservations()
	return c.Conn.Read(buffer)
}

// Close releases all reservations, also that of a body that has not arrived.
func (c *connection) Close() error {
	c.answering.Store(true)
	c.releaseReservations()
	return c.Conn.Close()
}

// connectionOf returns the connection that fasthttp serves, beneath TLS if necessary. It returns nil for one that this
// server did not accept.
func connectionOf(served net.Conn) *connection {
	if secured, ok := served.(*tls.Conn); ok {
		served = secured.NetConn()
	}
	c, _ := served.(*connection)
	return c
}

// stopReading fails the read of a body in progress, and with it the request.
func (c *connection) stopReading() { _ = c.SetReadDeadline(time.Unix(1, 0)) }

// leaveUnread notes that the request was not read completely.
func (c *connection) leaveUnread() {
	if c != nil {
		c.Linger()
	}
}

// noRoomForBody returns why the body behind the last header has no reservation; nil when it has one or needs none.
func (c *connection) noRoomForBody() error {
	if c == nil {
		return nil
	}
	return c.noRoom
}

// bodyRefusal returns why the body behind the last header was not read, or not completely, if memory was the reason. It
// releases the body's reservation.
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

// bodyArrived keeps the body's reservation until the request is answered.
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

// reserveAnswer reserves memory of a pool for the response, in place of an earlier reservation. It asks for the tenants only
// if it needs them.
func (c *connection) reserveAnswer(pool *memoryPool, bytes int, tenants func() []tenantKey) error {
	now := time.Now()
	if one := c.answer.Load(); one != nil {
		return one.resize(bytes, now)
	}
	one, err := pool.reserve(bytes, now, c.Abort, tenants()...)
	if err != nil {
		return err
	}
	c.answer.Store(one)
	c.answering.Store(true)
	return nil
}

// releaseAnswer releases the reservation of a response that turned out small.
func (c *connection) releaseAnswer() {
	if c != nil && c.answer.Load() != nil {
		c.answer.Swap(nil).release()
	}
}

// reserveBody reserves memory of a pool for the body behind a header, and returns whether there was room. Without room,
// bodyRefusal says why.
func (c *connection) reserveBody(pool *memoryPool, bytes int, now time.Time, of tenantKey) bool {
	one, err := pool.reserve(bytes, now, c.stopReading, of)
	if err != nil {
		c.noRoom = err
		return false
	}
	c.body.Store(one)
	return true
}

// within returns a connection for a request inside the process, with reservations of its own.
func (c *connection) within() *connection { return &connection{Conn: c.Conn} }

// release returns what the requests inside this connection reserved.
func (c *connection) release() {
	if c != nil {
		c.answering.Store(true)
		c.releaseReservations()
	}
}

// releaseReservations releases what the last request reserved. fasthttp reads or closes a connection only after it has
// written the response.
func (c *connection) releaseReservations() {
	if c.answering.Load() && c.answering.CompareAndSwap(true, false) { // most requests reserve nothing, and a load is cheaper than a swap
		c.body.Swap(nil).release()
		c.answer.Swap(nil).release()
	}
}
