package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

func (s *Server) actionRoutes(r *routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.post(prefix+"/sessions/{id}/actions", s.charge)
	}
}

type chargeAnswer struct {
	Session uuid.UUID `json:"session_id"`
	limitUsage
}

// decodeCharge is decode for a charge. The two ways to read it do not share a variable, for that of the slow one is
// allocated.
func decodeCharge(ctx *fasthttp.RequestCtx) (redisstore.Charge, error) {
	var quick chargeRequest
	if isJSON(&ctx.Request.Header) && quickCharge(ctx.Request.Body(), &quick) {
		return quick.charge()
	}
	var request chargeRequest
	if err := decode(ctx, &request); err != nil {
		return redisstore.Charge{}, err
	}
	return request.charge()
}

// charge counts actions and value against a session, all or nothing.
func (s *Server) charge(ctx *fasthttp.RequestCtx) error {
	asks, id, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	wanted, err := decodeCharge(ctx)
	if err != nil {
		return err
	}
	if err := asks.mayUse(wanted.Scope); err != nil {
		s.counts.charges.refused(err)
		return err
	}
	if wanted.Idempotency, err = once(ctx, "charge", id); err != nil {
		return err
	}
	usage, err := s.store.Charge(forRequest(ctx), asks.Caller, id, wanted)
	s.noteReplay(ctx, wanted.Idempotency)
	s.counts.charged(wanted, err)
	if err != nil {
		return err
	}
	var written [answerSize]byte
	return answerWritten(ctx, chargeAnswer{id, usageOf(usage)}.append(written[:0]))
}

// append writes a charge's answer.
func (a chargeAnswer) append(o object) object {
	o = o.id(`{"session_id":`, a.Session)
	o = o.number(`,"action_count":`, a.ActionCount)
	o = o.number(`,"max_actions":`, a.MaxActions)
	o = o.amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.amount(`,"max_value_usd":`, a.MaxValue)
	o = o.amount(`,"value_held_usd":`, a.ValueHeld)
	o = o.number(`,"remaining_actions":`, a.RemainingActions)
	o = o.amount(`,"remaining_value_usd":`, a.RemainingValue)
	o = o.time(`,"expires_at":`, a.Expires)
	return append(o, '}')
}
