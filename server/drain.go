package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// A server that is told to stop first tells its clients: for a while it goes on as before, and says with every answer
// that the connection closes. Clients at work have then all been told, and those that are not are left with connections
// on which nothing happens. Closing these at once instead would lose every request that is just under way to them.
const (
	drainTime = time.Second            // of telling, at the most
	quietTime = 400 * time.Millisecond // without a request ends it earlier
	drainStep = 5 * time.Millisecond
)

// drain is how far a server is with stopping.
type drain struct {
	most, quiet time.Duration // drainTime and quietTime, but for tests

	begun   atomic.Bool
	lastAsk atomic.Int64 // when the last request came, in ns since 1970
}

// tell adds to an answer that its connection closes, once the server stops.
func (d *drain) tell(ctx *fasthttp.RequestCtx) {
	if d.begun.Load() {
		d.lastAsk.Store(time.Now().UnixNano())
		ctx.SetConnectionClose()
	}
}

// Shutdown answers what has arrived and what arrives in the next moments, then stops listening, and returns when every
// connection is closed. When ctx ends before, it gives up, and its error says how many are left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain.lastAsk.Store(time.Now().UnixNano())
	s.drain.begun.Store(true)
	s.waiting.end()
	s.awaitQuiet(ctx)
	s.open.stopAccepting()
	for s.open.leave(s.drain.quiet) > 0 && pauseUnless(ctx, drainStep) {
	}
	watched := make(chan struct{})
	go func() { // which takes half a second at the most
		defer close(watched)
		s.endWatching()
	}()
	err := s.http.ShutdownWithContext(ctx)
	s.turnedAway.end(s.log)
	select {
	case <-watched:
	case <-ctx.Done():
	}
	if err != nil {
		return fmt.Errorf("%d connections are cut: %w", s.open.count(), err)
	}
	return nil
}

// awaitQuiet returns when nothing is asked any more, or has been for long enough.
func (s *Server) awaitQuiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.drain.most)
	defer cancel()
	for s.open.count() > 0 && time.Since(time.Unix(0, s.drain.lastAsk.Load())) < s.drain.quiet && pauseUnless(ctx, drainStep) {
	}
}

func pauseUnless(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// stopAccepting wakes the listeners, which then accept what has already connected and no more.
func (o *openConnections) stopAccepting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	for _, l := range o.listeners {
		if timed, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || timed.SetDeadline(time.Unix(1, 0)) != nil {
			_ = l.Close()
		}
	}
}

// isClosing says whether no more connections are wanted.
func (o *openConnections) isClosing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}

// lateConnections takes what waits to be accepted, and closes the listener. The system would reset those connections,
// whose clients may have sent a request. As long as it takes them, more may come: it takes no more than most.
func lateConnections(l net.Listener, most int) []net.Conn {
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
		for range most {
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

// acceptLate returns the late connections one by one, and then io.EOF, on which fasthttp ends.
func (l *listener) acceptLate() (net.Conn, error) {
	if !l.closed {
		l.closed, l.late = true, lateConnections(l.Listener, l.open.most)
	}
	if len(l.late) == 0 {
		return nil, io.EOF
	}
	conn := l.late[0]
	l.late = l.late[1:]
	return conn, nil
}

// leave wakes every connection that waits for a request, which then looks once more whether one has come. It returns how
// many of those that can be woken, and how many listeners, are still open. Of the others, which fasthttp closes, those are
// closed that have never sent a byte: it would wait for them. A connection is new for a while, in which it is left alone:
// its client has just made it to send something, which may be under way.
func (o *openConnections) leave(isNew time.Duration) (open int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	open = len(o.listeners)
	for c := range o.open {
		switch {
		case !c.spoke.Load() && time.Since(c.since) < isNew:
			open++
		case c.ahead != nil:
			open++
			c.stopWaiting()
		case !c.spoke.Load():
			_ = c.Conn.Close()
		}
	}
	return open
}

func (c *connection) stopWaiting() {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	if c.waits {
		c.left = true
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// awaitRequest waits for the first byte of a request. When it is left it returns io.EOF, unless one has come.
func (c *connection) awaitRequest() error {
	c.setWaiting(true)
	err := c.ahead.fill()
	if left := c.setWaiting(false); left && errors.Is(err, os.ErrDeadlineExceeded) {
		return c.ahead.fillNow()
	}
	return err
}

func (c *connection) setWaiting(waits bool) (left bool) {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	c.waits = waits
	return c.left
}
