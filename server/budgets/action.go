package budgets

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) actionRoutes(r *web.Routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.Post(prefix+"/sessions/{id}/actions", redisstore.Operator, h.Guard.ByEitherAt(h.charge))
	}
}

// ChargeAnswer is the response to a charge.
type ChargeAnswer struct {
	Session uuid.UUID `json:"session_id"`
	web.LimitUsage
	WouldRefuse string `json:"would_refuse,omitzero"` // the limit, in a session that observes
}

// decodeCharge is decode for a charge. The two ways to read it use separate variables, because decode makes its variable
// escape to the heap.
func decodeCharge(ctx *fasthttp.RequestCtx) (redisstore.Charge, error) {
	var fast chargeRequest
	if web.IsJSON(&ctx.Request.Header) && decodeFast(ctx.Request.Body(), &fast) {
		return fast.charge()
	}
	if len(ctx.Request.Body()) == 0 { // a body that was lost on the way must not count as a free action
		return redisstore.Charge{}, errEmptyCharge
	}
	var request chargeRequest
	if err := web.Decode(ctx, &request); err != nil {
		return redisstore.Charge{}, err
	}
	return request.charge()
}

var errEmptyCharge = web.Invalid("", "the body is empty: send {} to charge one action without value")

// charge counts actions and value against a session, all or nothing.
func (h *Handlers) charge(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	wanted, err := decodeCharge(ctx)
	if err != nil {
		return err
	}
	if err := caller.MayUse(wanted.Scope); err != nil {
		h.counted.charged(wanted, err)
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyUnlessDry(ctx, "charge", id, wanted.DryRun); err != nil {
		return err
	}
	usage, err := h.Store.Charge(web.RequestContext(ctx), caller.Caller, id, wanted)
	h.counted.charged(wanted, err)
	if err != nil {
		return redisstore.Needing(err, wanted.Count, wanted.Value)
	}
	h.counted.observed(usage.WouldRefuse, wanted.DryRun, wanted.Idempotency)
	var written [web.AnswerSize]byte
	return web.AnswerWritten(ctx, ChargeAnswer{id, web.UsageOf(usage), usage.WouldRefuse}.append(written[:0]))
}

// append writes the response as the encoder would.
func (a ChargeAnswer) append(o web.Object) web.Object {
	o = o.ID(`{"session_id":`, a.Session)
	o = o.Number(`,"action_count":`, a.ActionCount)
	o = o.Number(`,"max_actions":`, a.MaxActions)
	o = o.Amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.Amount(`,"max_value_usd":`, a.MaxValue)
	o = o.Amount(`,"value_held_usd":`, a.ValueHeld)
	o = o.Number(`,"remaining_actions":`, a.RemainingActions)
	o = o.Amount(`,"remaining_value_usd":`, a.RemainingValue)
	o = o.Time(`,"expires_at":`, a.Expires)
	if a.WouldRefuse != "" {
		o = o.Plain(`,"would_refuse":`, a.WouldRefuse)
	}
	return append(o, '}')
}
