package conn

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"
)

// Served is a client connection with the memory that its request and its response reserve.
type Served struct {
	*Conn
	body, answer atomic.Pointer[Reservation] // nil when they are small
	answering    atomic.Bool                 // the next read releases them
	ForPages     bool                        // it came to the listener of ServePages
	noRoom       error                       // why the body behind the last header has no reservation; nil when it has one or needs none
}

// Reserving returns a listener that turns the connections of one of a Set into Served ones. ForPages marks them.
func Reserving(accepting net.Listener, forPages bool) net.Listener {
	return memoryListener{accepting, forPages}
}

type memoryListener struct {
	net.Listener

	forPages bool
}

func (l memoryListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Served{Conn: accepted.(*Conn), ForPages: l.forPages}, nil
}

// Read releases what the last request reserved: fasthttp reads again only after it has written the response.
func (c *Served) Read(buffer []byte) (int, error) {
	c.ReleaseReservations()
	return c.Conn.Read(buffer)
}

// Close releases all reservations, also that of a body that has not arrived.
func (c *Served) Close() error {
	c.answering.Store(true)
	c.ReleaseReservations()
	return c.Conn.Close()
}

// Of returns the connection that fasthttp serves, beneath TLS if necessary. It returns nil for one that this
// server did not accept.
func Of(served net.Conn) *Served {
	if secured, ok := served.(*tls.Conn); ok {
		served = secured.NetConn()
	}
	c, _ := served.(*Served)
	return c
}

// stopReading fails the read of a body in progress, and with it the request.
func (c *Served) stopReading() { _ = c.SetReadDeadline(time.Unix(1, 0)) }

// LeaveUnread notes that the request was not read completely.
func (c *Served) LeaveUnread() {
	if c != nil {
		c.Linger()
	}
}

// NoRoomForBody returns why the body behind the last header has no reservation; nil when it has one or needs none.
func (c *Served) NoRoomForBody() error {
	if c == nil {
		return nil
	}
	return c.noRoom
}

// BodyRefusal returns why the body behind the last header was not read, or not completely, if memory was the reason. It
// releases the body's reservation.
func (c *Served) BodyRefusal() error {
	if c == nil {
		return nil
	}
	err := c.noRoom
	if one := c.body.Swap(nil); one.Release() {
		err = one.pool.errFull
	}
	c.noRoom = nil
	return err
}

// BodyArrived keeps the body's reservation until the request is answered.
func (c *Served) BodyArrived() {
	if c == nil {
		return
	}
	c.noRoom = nil
	if one := c.body.Load(); one != nil {
		one.Pin()
		c.answering.Store(true)
	}
}

// ReserveAnswer reserves memory of a pool for the response, in place of an earlier reservation. It asks for the tenants only
// if it needs them.
func (c *Served) ReserveAnswer(pool *Pool, bytes int, tenants func() []Tenant) error {
	now := time.Now()
	if one := c.answer.Load(); one != nil {
		return one.Resize(bytes, now)
	}
	one, err := pool.Reserve(bytes, now, c.Abort, tenants()...)
	if err != nil {
		return err
	}
	c.answer.Store(one)
	c.answering.Store(true)
	return nil
}

// ReleaseAnswer releases the reservation of a response that turned out small.
func (c *Served) ReleaseAnswer() {
	if c != nil && c.answer.Load() != nil {
		c.answer.Swap(nil).Release()
	}
}

// ReserveBody reserves memory of a pool for the body behind a header, and returns whether there was room. Without room,
// BodyRefusal says why.
func (c *Served) ReserveBody(pool *Pool, bytes int, now time.Time, of Tenant) bool {
	one, err := pool.Reserve(bytes, now, c.stopReading, of)
	if err != nil {
		c.noRoom = err
		return false
	}
	c.body.Store(one)
	return true
}

// Within returns a connection for a request inside the process, with reservations of its own.
func (c *Served) Within() *Served { return &Served{Conn: c.Conn} }

// Release returns what the requests inside this connection reserved.
func (c *Served) Release() {
	if c != nil {
		c.answering.Store(true)
		c.ReleaseReservations()
	}
}

// ReleaseReservations releases what the last request reserved. fasthttp reads or closes a connection only after it has
// written the response.
func (c *Served) ReleaseReservations() {
	if c.answering.Load() && c.answering.CompareAndSwap(true, false) { // most requests reserve nothing, and a load is cheaper than a swap
		c.body.Swap(nil).Release()
		c.answer.Swap(nil).Release()
	}
}
