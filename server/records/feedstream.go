package records

import (
	"bufio"
	"context"
	"fmt"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/web"
)

// streamFeed streams the organization's events as they come (WHATWG HTML §9.2), until the client disconnects, the key ends, the
// slot is displaced or the server stops. Ids of the stream are numbers of events.
func (h *Handlers) streamFeed(ctx *fasthttp.RequestCtx, key redisstore.APIKey, q feedQuery) error {
	request, memory := web.RequestContext(ctx), h.Front.NewPageMemory(ctx)
	if err := memory.Reserve(); err != nil {
		return err
	}
	page, err := h.Store.OrganizationEvents(request, key, q.after, conn.StreamPage) // a refusal is answered before the stream begins
	if err != nil {
		memory.Release()
		return err
	}
	slot, err := h.Front.Waiters.Acquire(key.Organization, h.Front.WaiterAddress(ctx))
	if err != nil {
		memory.Release()
		return err
	}
	memory.Tenants = h.Front.AnswerTenants(ctx) // the key is known to be the organization's now
	f := &feedStream{Stream: h.Front.NewStream(ctx, slot), handlers: h, memory: memory, request: request, key: key, query: q}
	web.KeepFromCaches(ctx)
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer slot.Release()
		defer memory.Release()
		defer f.Recover()
		events := page.Events
		page.Events = nil // else the first page would stay in memory as long as the stream
		f.run(w, events)
	})
	return nil
}

// feedStream is one client's stream of an organization's events.
type feedStream struct {
	web.Stream

	handlers *Handlers
	memory   *conn.PageMemory
	request  context.Context
	key      redisstore.APIKey
	query    feedQuery // after moves on
}

// run writes events, and those that follow, until the connection or the authorization ends. Reading the events rechecks the
// authorization.
func (f *feedStream) run(w *bufio.Writer, events []redisstore.FeedEvent) {
	wanted, left := context.WithCancel(f.Slot.Context())
	defer left()
	go f.AwaitDisconnect(left)
	for {
		if f.memory.Keep(sizeOf(events)) != nil || f.write(w, events) != nil || wanted.Err() != nil {
			return
		}
		last := len(events) < conn.StreamPage
		f.memory.Release()
		if last && f.handlers.awaitFeedFor(wanted, f.key, f.query.after, f.handlers.Pulse) != nil {
			return
		}
		if f.memory.Await(wanted, f.handlers.Pulse) != nil {
			return
		}
		if f.ExtendDeadline() != nil { // for the last write too
			return
		}
		page, err := f.handlers.Store.OrganizationEvents(f.request, f.key, f.query.after, conn.StreamPage)
		if err != nil {
			return
		}
		events = page.Events
	}
}

// sizeOf returns how many bytes the events take.
func sizeOf(events []redisstore.FeedEvent) (bytes int) {
	for _, e := range events {
		bytes += len(e.JSON)
	}
	return bytes
}

// write sends the events that the query wants, or a comment when there are none, which keeps the connection alive and detects a
// dead one.
func (f *feedStream) write(w *bufio.Writer, events []redisstore.FeedEvent) error {
	written := false
	for _, e := range events {
		if f.query.after = e.Sequence; f.query.wants(e) {
			written = true
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Sequence, e.Type, e.JSON)
		}
	}
	if !written {
		fmt.Fprint(w, ":\n\n")
	}
	return w.Flush()
}
