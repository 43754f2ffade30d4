package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// streamPulse is the longest silence of a stream, and between two checks of its authorization.
const streamPulse = 15 * time.Second

// streamEvents streams the agent's audit trail as it grows (WHATWG HTML §9.2), until the client disconnects, the credential
// ends, the slot is displaced or the server stops.
func (s *Server) streamEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID, q eventQuery) error {
	request, memory := web.RequestContext(ctx), s.front.NewPageMemory(ctx)
	if err := memory.Reserve(); err != nil {
		return err
	}
	events, more, err := s.store.Events(request, caller.Caller, agent, q.after, conn.StreamPage) // a refusal is answered before the stream begins
	if err != nil {
		memory.Release()
		return err
	}
	slot, err := s.waiters.Acquire(caller.OrganizationID(), s.front.WaiterAddress(ctx))
	if err != nil {
		memory.Release()
		return err
	}
	memory.Tenants = s.front.AnswerTenants(ctx) // the credential is known to be the organization's now
	stream := &stream{server: s, slot: slot, memory: memory, caller: caller, agent: agent, after: q.after, request: request, conn: ctx.Conn(), id: web.RequestID(ctx)}
	web.KeepFromCaches(ctx)
	ctx.Response.Header.SetContentType(eventStream)
	ctx.Response.Header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	ctx.SetConnectionClose()
	ctx.Request.ResetBody() // fasthttp would keep it as long as the stream
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer slot.Release()
		defer memory.Release()
		defer stream.recover()
		first := events
		events = nil // else the first page would stay in memory as long as the stream
		stream.run(w, first, more)
	})
	return nil
}

// stream is one client's stream of an audit trail.
type stream struct {
	server  *Server
	slot    *conn.Slot
	memory  *conn.PageMemory
	caller  access.Caller
	agent   uuid.UUID
	after   string
	request context.Context
	conn    net.Conn
	id      string // of the request
}

// run writes events, and those that follow, until the connection or the authorization ends. Reading the events rechecks the
// authorization.
func (t *stream) run(w *bufio.Writer, events []redisstore.Event, more bool) {
	wanted, left := context.WithCancel(t.slot.Context())
	defer left()
	go t.awaitDisconnect(left)
	for !t.caller.HasExpired() {
		if t.memory.Keep(len(events)*conn.EventBytes) != nil || t.write(w, events) != nil || wanted.Err() != nil {
			return
		}
		t.memory.Release()
		if !more && t.server.awaitEventFor(wanted, t.agent, t.after, t.caller.Patience(t.server.pulse)) != nil {
			return
		}
		if t.memory.Await(wanted, t.server.pulse) != nil {
			return
		}
		// fasthttp has set one write deadline for the whole response. Each write, the last one too, needs its own.
		if t.conn.SetWriteDeadline(time.Now().Add(conn.WriteTimeout)) != nil {
			return
		}
		var err error
		if events, more, err = t.server.store.Events(t.request, t.caller.Caller, t.agent, t.after, conn.StreamPage); err != nil {
			return
		}
	}
}

// awaitDisconnect ends the stream when the client disconnects; writing would notice that only two pulses later. Nothing
// else reads from the connection, which ends with the stream, and this goroutine with it. A client that sends more data
// is not waiting for events, so that ends the stream too.
func (t *stream) awaitDisconnect(left func()) {
	defer left()
	defer t.recover()
	if t.conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	var unread [1]byte
	_, _ = t.conn.Read(unread[:])
}

// write sends the events, or a comment when there are none, which keeps the connection alive and detects a dead one.
func (t *stream) write(w *bufio.Writer, events []redisstore.Event) error {
	if len(events) == 0 {
		fmt.Fprint(w, ":\n\n")
	}
	for _, e := range events {
		data, err := web.Encode(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
		t.after = e.ID
	}
	return w.Flush()
}

// recover keeps a panic from ending the process: this goroutine runs outside any handler.
func (t *stream) recover() {
	if cause := recover(); cause != nil {
		t.server.metrics.http.Panics.Inc()
		t.server.front.Log.Error("event stream panicked", "request_id", t.id, "cause", cause, "stack", string(debug.Stack()))
	}
}
