package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (s *Server) eventRoutes(r *web.Routes) {
	r.Get("/v1/agents/{id}/events", redisstore.Viewer, s.listEvents)
}

// listEvents returns a page of an agent's audit trail, or a stream of it to a client that accepts one.
func (s *Server) listEvents(ctx *fasthttp.RequestCtx) error {
	caller, agent, err := s.guard.CallerAndID(ctx)
	if err != nil {
		return err
	}
	query, err := readEventQuery(ctx)
	if err != nil {
		return err
	}
	if wantsStream(ctx) && !ctx.IsHead() {
		return s.streamEvents(ctx, caller, agent, query)
	}
	events, more, err := s.readEvents(ctx, caller, agent, query)
	if err == nil && len(events) == 0 && query.wait > 0 && !ctx.IsHead() {
		web.ReleaseAnswer(ctx) // while it waits
		query.limit = min(query.limit, conn.StreamPage)
		if err = s.awaitEvent(caller, s.front.WaiterAddress(ctx), agent, query); err == nil {
			events, more, err = s.readEvents(ctx, caller, agent, query)
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
func (s *Server) readEvents(ctx *fasthttp.RequestCtx, caller access.Caller, agent uuid.UUID, q eventQuery) (events []redisstore.Event, more bool, err error) {
	if err := s.front.ReserveAnswer(ctx, q.limit*conn.EventBytes); err != nil {
		return nil, false, err
	}
	return s.store.Events(web.RequestContext(ctx), caller.Caller, agent, q.after, q.limit)
}
