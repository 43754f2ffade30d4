package records

import (
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
func (h *Handlers) readEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID, q EventQuery) (events []redisstore.Event, more bool, err error) {
	if err := h.Front.ReserveAnswer(ctx, q.Limit*conn.EventBytes); err != nil {
		return nil, false, err
	}
	return h.Store.Events(web.RequestContext(ctx), caller.Caller, agent, q.After, q.Limit)
}
