package records

import (
	"bufio"
	"context"
	"fmt"
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
func (h *Handlers) streamEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID, q EventQuery) error {
	request, memory := web.RequestContext(ctx), h.Front.NewPageMemory(ctx)
	if err := memory.Reserve(); err != nil {
		return err
	}
	events, more, err := h.Store.Events(request, caller.Caller, agent, q.After, conn.StreamPage) // a refusal is answered before the stream begins
	if err != nil {
		memory.Release()
		return err
	}
	slot, err := h.Front.Waiters.Acquire(caller.OrganizationID(), h.Front.WaiterAddress(ctx))
	if err != nil {
		memory.Release()
		return err
	}
	memory.Tenants = h.Front.AnswerTenants(ctx) // the credential is known to be the organization's now
	stream := &stream{Stream: h.Front.NewStream(ctx, slot), handlers: h, memory: memory, request: request, caller: caller, agent: agent, after: q.After}
	web.KeepFromCaches(ctx)
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer slot.Release()
		defer memory.Release()
		defer stream.Recover()
		first := events
		events = nil // else the first page would stay in memory as long as the stream
		stream.run(w, first, more)
	})
	return nil
}

// stream is one client's stream of an audit trail.
type stream struct {
	web.Stream

	handlers *Handlers
	memory   *conn.PageMemory
	request  context.Context
	caller   access.Caller
	agent    uuid.UUID
	after    string
}

// run writes events, and those that follow, until the connection or the authorization ends. Reading the events rechecks the
// authorization.
func (t *stream) run(w *bufio.Writer, events []redisstore.Event, more bool) {
	wanted, left := context.WithCancel(t.Slot.Context())
	defer left()
	go t.AwaitDisconnect(left)
	for !t.caller.HasExpired() {
		if t.memory.Keep(len(events)*conn.EventBytes) != nil || t.write(w, events) != nil || wanted.Err() != nil {
			return
		}
		t.memory.Release()
		if !more && t.handlers.awaitEventFor(wanted, t.agent, t.after, t.caller.Patience(t.handlers.Pulse)) != nil {
			return
		}
		if t.memory.Await(wanted, t.handlers.Pulse) != nil {
			return
		}
		if t.ExtendDeadline() != nil { // for the last write too
			return
		}
		var err error
		if events, more, err = t.handlers.Store.Events(t.request, t.caller.Caller, t.agent, t.after, conn.StreamPage); err != nil {
			return
		}
	}
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
