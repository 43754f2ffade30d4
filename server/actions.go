package server

import (
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

func (s *Server) actionRoutes(r *routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.post(prefix+"/sessions/{id}/actions", s.charge)
	}
}

const (
	maxCount            = 1000
	maxActionTypeLength = 200 // characters
)

type chargeRequest struct {
	ActionType optional[string]         `json:"action_type"` // says what the action is; nothing depends on it
	Value      optional[money.MicroUSD] `json:"value_usd"`   // of all the actions together
	Count      optional[int64]          `json:"count"`
	Scope      optional[string]         `json:"scope"`
}

func (r *chargeRequest) charge() (redisstore.Charge, error) {
	var v validation
	c := r.check(&v)
	return c, v.err()
}

func (r *chargeRequest) check(v *validation) redisstore.Charge {
	c := redisstore.Charge{Count: r.Count.or(1), Value: r.Value.value, Scope: r.Scope.value}
	v.within("count", c.Count, 1, maxCount)
	v.actionType(r.ActionType)
	if r.Scope.given {
		v.require(isScope(c.Scope), "scope", "must be one scope")
	}
	return c
}

func (v *validation) actionType(given optional[string]) {
	length := utf8.RuneCountInString(given.value)
	v.require(!given.given || length >= 1 && length <= maxActionTypeLength, "action_type", "must have 1 to 200 characters")
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
