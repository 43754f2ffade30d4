package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

const (
	streamPage  = 100              // events read at once
	streamPulse = 15 * time.Second // a stream says at least this often that it lives, and asks whether it still may
)

// streamEvents answers with the agent's audit trail as it grows (WHATWG HTML §9.2), until the client leaves, the
// credential ends, the place is displaced or the server ends.
func (s *Server) streamEvents(ctx *fasthttp.RequestCtx, asks caller, agent uuid.UUID, q eventQuery) error {
	asked := forRequest(ctx)
	events, more, err := s.store.Events(asked, asks.Caller, agent, q.after, streamPage) // what is refused is refused now
	if err != nil {
		return err
	}
	place, err := s.waiting.enter(asks.organization(), s.waiterAddress(ctx))
	if err != nil {
		return err
	}
	stream := &stream{server: s, place: place, asks: asks, agent: agent, after: q.after, asked: asked, conn: ctx.Conn(), id: requestID(ctx)}
	keepFromCaches(ctx)
	ctx.Response.Header.SetContentType(eventStream)
	ctx.Response.Header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	ctx.SetConnectionClose()
	ctx.Request.ResetBody() // fasthttp would keep it as long as the stream
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer place.leave()
		defer stream.recover()
		stream.run(w, events, more)
	})
	return nil
}

// stream is one client's view of an audit trail.
type stream struct {
	server *Server
	place  *place
	asks   caller
	agent  uuid.UUID
	after  string
	asked  context.Context
	conn   net.Conn
	id     string // of the request
}

// run writes events, and what follows them, until it cannot, or may not, any more.
func (t *stream) run(w *bufio.Writer, events []redisstore.Event, more bool) {
	wanted, left := context.WithCancel(t.place.ctx)
	defer left()
	go t.noticeEnd(left)
	for !t.asks.hasExpired() {
		if t.write(w, events) != nil || wanted.Err() != nil {
			return
		}
		if !more && t.server.awaitEventFor(wanted, t.agent, t.after, t.asks.patience(t.server.pulse)) != nil {
			return
		}
		// fasthttp has set one deadline for the whole answer. What is written next has its own, the end too.
		if t.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
			return
		}
		var err error
		if events, more, err = t.server.store.Events(t.asked, t.asks.Caller, t.agent, t.after, streamPage); err != nil {
			return
		}
	}
}

// noticeEnd says when the client has left: writing tells so only two pulses later. Nobody else reads from the connection,
// for it ends with the stream, and this with it. A client that sends something more wants something else: that ends it too.
func (t *stream) noticeEnd(left func()) {
	defer left()
	defer t.recover()
	if t.conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	var unread [1]byte
	_, _ = t.conn.Read(unread[:])
}

// write sends the events, or a comment when there are none: so that the connection is not taken for dead, and is noticed
// when it is.
func (t *stream) write(w *bufio.Writer, events []redisstore.Event) error {
	if len(events) == 0 {
		fmt.Fprint(w, ":\n\n")
	}
	for _, e := range events {
		data, err := json.Marshal(eventOf(e, t.agent, t.asks.organization()))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
		t.after = e.ID
	}
	return w.Flush()
}

// recover keeps a panic from ending the process: no handler stands above this goroutine.
func (t *stream) recover() {
	if cause := recover(); cause != nil {
		t.server.counts.panics.Inc()
		t.server.log.Error("panic in a stream", "request_id", t.id, "cause", cause, "stack", string(debug.Stack()))
	}
}
