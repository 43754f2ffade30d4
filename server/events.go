package server

import "github.com/valyala/fasthttp"

func (s *Server) eventRoutes(r *routes) {
	r.get("/v1/agents/{id}/events", s.listEvents)
}

// listEvents answers a page of an agent's audit trail, or the trail as it grows to a client that accepts a stream.
func (s *Server) listEvents(ctx *fasthttp.RequestCtx) error {
	asks, agent, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	query, err := readEventQuery(ctx)
	if err != nil {
		return err
	}
	if wantsStream(ctx) && !ctx.IsHead() {
		return s.streamEvents(ctx, asks, agent, query)
	}
	events, more, err := s.store.Events(forRequest(ctx), asks.Caller, agent, query.after, query.limit)
	if err == nil && len(events) == 0 && query.wait > 0 && !ctx.IsHead() {
		if err = s.awaitEvent(asks, s.waiterAddress(ctx), agent, query); err == nil {
			events, more, err = s.store.Events(forRequest(ctx), asks.Caller, agent, query.after, query.limit)
		}
	}
	if err != nil {
		return err
	}
	answers := make([]eventAnswer, len(events))
	for i, e := range events {
		answers[i] = eventOf(e, agent, asks.organization())
	}
	if more {
		announce(ctx, "after", events[len(events)-1].ID)
	}
	return answer(ctx, answers)
}
