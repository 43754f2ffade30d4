package web

import (
	"bufio"
	"context"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// EventStream is the media type of a stream of events (WHATWG HTML §9.2).
const EventStream = "text/event-stream"

// Stream is a response that lasts until its client leaves or its slot ends. Its goroutines run outside any handler.
type Stream struct {
	conn  net.Conn
	front *Front
	id    string // of the request
}

// Stream answers a request that holds a slot with a stream, and releases the slot and what else it holds at its end. run's context ends when
// the client disconnects and with the slot.
func (f *Front) Stream(ctx *fasthttp.RequestCtx, slot *conn.Slot, release func(), run func(context.Context, *Stream, *bufio.Writer)) {
	ctx.Response.Header.SetContentType(EventStream)
	ctx.Response.Header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	ctx.SetConnectionClose()
	ctx.Request.ResetBody() // fasthttp would keep it as long as the stream
	s := &Stream{conn: ctx.Conn(), front: f, id: RequestID(ctx)}
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer slot.Release()
		defer release()
		defer s.containPanic()
		wanted, left := context.WithCancel(slot.Context())
		defer left()
		go s.awaitDisconnect(left)
		run(wanted, s, w)
	})
}

// awaitDisconnect calls left when the client disconnects; writing would notice that only two pulses later. Nothing else reads from
// the connection, which ends with the stream, and with it the goroutine that calls this. A client that sends more data is not
// waiting for events, so that ends the stream too.
func (s *Stream) awaitDisconnect(left func()) {
	defer left()
	defer s.containPanic()
	if s.conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	var unread [1]byte
	_, _ = s.conn.Read(unread[:])
}

// ExtendDeadline gives the next write a deadline of its own: fasthttp has set one for the whole response.
func (s *Stream) ExtendDeadline() error {
	return s.conn.SetWriteDeadline(time.Now().Add(conn.WriteTimeout))
}

// containPanic keeps a panic from ending the process. Defer it.
func (s *Stream) containPanic() {
	if cause := recover(); cause != nil {
		s.front.Metrics.Panics.Inc()
		s.front.Log.Error("event stream panicked", "request_id", s.id, "cause", cause, "stack", string(debug.Stack()))
	}
}

// Await runs wait until it returns, ctx ends or the patience is over. It returns only what went wrong besides that.
func Await(ctx context.Context, patience time.Duration, wait func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := wait(bounded); err != bounded.Err() {
		return err
	}
	return nil
}
