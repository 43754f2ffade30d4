package budgets

import (
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/web"
)

type changeHoldRequest struct {
	Value     web.Optional[money.MicroUSD] `json:"value_usd"`
	ExpiresIn web.Optional[int64]          `json:"expires_in_seconds"` // from now
}

func (r *changeHoldRequest) hold() (redisstore.NewHold, error) {
	var v web.Validation
	n := redisstore.NewHold{Value: r.Value.Pointer()}
	if r.ExpiresIn.Given {
		v.Within("expires_in_seconds", r.ExpiresIn.Value, 1, web.MaxLifetimeSeconds)
		n.Lifetime = new(time.Duration(r.ExpiresIn.Value) * time.Second)
	}
	v.Require(n != (redisstore.NewHold{}), "", "name at least one of value_usd and expires_in_seconds")
	return n, v.Err()
}

// changeHold changes the held value or the expiry of a pending transaction.
func (h *Handlers) changeHold(ctx *fasthttp.RequestCtx, agent redisstore.AccessToken, id uuid.UUID) error {
	var request changeHoldRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.hold()
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "change hold", id); err != nil {
		return err
	}
	changed, err := h.Store.ChangeHold(web.RequestContext(ctx), agent, id, wanted)
	if err != nil {
		h.counted.refusedByAgent(err)
		return redisstore.Needing(err, 0, request.Value.Value)
	}
	h.counted.observed(changed.WouldRefuse, false, wanted.Idempotency)
	return web.Answer(ctx, transactionOf(changed))
}
