package records

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) eventRoutes(r *web.Routes) {
	r.Get("/v1/agents/{id}/events", redisstore.Viewer, h.Guard.ByEitherAt(h.listEvents))
}

// listEvents returns a page of an agent's audit trail, or a stream of it to a client that accepts one.
func (h *Handlers) listEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID) error {
	query, err := ReadEventQuery(ctx)
	if err != nil {
		return err
	}
	if wantsStream(ctx) && !ctx.IsHead() {
		return h.streamEvents(ctx, caller, agent, query)
	}
	events, more, err := h.readEvents(ctx, caller, agent, query)
	if err == nil && len(events) == 0 && query.Wait > 0 && !ctx.IsHead() {
		web.ReleaseAnswer(ctx) // while it waits
		query.Limit = min(query.Limit, conn.StreamPage)
		if err = h.awaitEvent(caller, h.Front.WaiterAddress(ctx), agent, query); err == nil {
			events, more, err = h.readEvents(ctx, caller, agent, query)
		}
	}
	if err != nil {
		return err
	}
	if more {
		web.Announce(ctx, "after", events[len(events)-1].ID)
	}
	return web.Answer(ctx, events)
}

// readEvents returns a page of events, for which it reserves memory first.
func (h *Handlers) readEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID, q EventQuery[string]) (events []redisstore.Event, more bool, err error) {
	if err := h.Front.ReserveAnswer(ctx, q.Limit*conn.EventBytes); err != nil {
		return nil, false, err
	}
	return h.Store.Events(web.RequestContext(ctx), caller.Caller, agent, q.After, q.Limit)
}

// awaitEvent waits for an event until the time is over, the slot is displaced or the server stops. It may return without an
// event.
func (h *Handlers) awaitEvent(caller access.Caller, from netip.Addr, agent uuid.UUID, q EventQuery[string]) error {
	slot, err := h.Front.Waiters.Acquire(caller.OrganizationID(), from)
	if err != nil {
		return err
	}
	defer slot.Release()
	if err := h.awaitEventFor(slot.Context(), agent, q.After, caller.Patience(q.Wait)); err != nil {
		return err
	}
	if caller.HasExpired() {
		return access.ErrInvalidToken
	}
	return nil
}

// awaitEventFor is awaitEvent for a request that holds a slot already. It ends with ctx.
func (h *Handlers) awaitEventFor(ctx context.Context, agent uuid.UUID, after string, patience time.Duration) error {
	return web.Await(ctx, patience, func(ctx context.Context) error { return h.Store.AwaitEvent(ctx, agent, after) })
}

// streamEvents streams the agent's audit trail as it grows.
func (h *Handlers) streamEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID, q EventQuery[string]) error {
	after := q.After
	events := &tail[redisstore.Event]{
		organization: caller.OrganizationID(),
		read: func(ctx context.Context) ([]redisstore.Event, bool, error) {
			return h.Store.Events(ctx, caller.Caller, agent, after, conn.StreamPage)
		},
		await: func(ctx context.Context, most time.Duration) error {
			return h.awaitEventFor(ctx, agent, after, caller.Patience(most))
		},
		write: func(w *bufio.Writer, e redisstore.Event) (bool, error) {
			data, err := web.Encode(e)
			if err != nil {
				return false, err
			}
			after = e.ID
			_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
			return true, err
		},
		size: func(page []redisstore.Event) int { return len(page) * conn.EventBytes },
		over: caller.HasExpired,
	}
	return events.stream(ctx, h)
}
