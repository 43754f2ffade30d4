package server

import "github.com/valyala/fasthttp"

func (s *Server) eventRoutes(r *routes) {
	r.get("/v1/agents/{id}/events", s.listEvents)
}

// listEvents returns a page of an agent's audit trail, or a stream of it to a client that accepts one.
func (s *Server) listEvents(ctx *fasthttp.RequestCtx) error {
	caller, agent, err := s.callerAndID(ctx)
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
	events, more, err := s.store.Events(requestContext(ctx), caller.Caller, agent, query.after, query.limit)
	if err == nil && len(events) == 0 && query.wait > 0 && !ctx.IsHead() {
		if err = s.awaitEvent(caller, s.waiterAddress(ctx), agent, query); err == nil {
			events, more, err = s.store.Events(requestContext(ctx), caller.Caller, agent, query.after, query.limit)
		}
	}
	if err != nil {
		return err
	}
	answers := make([]eventAnswer, len(events))
	for i, e := range events {
		answers[i] = eventOf(e, agent, caller.organizationID())
	}
	if more {
		announce(ctx, "after", events[len(events)-1].ID)
	}
	return answer(ctx, answers)
}
