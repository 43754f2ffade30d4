package server

import (
	"time"

	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

type changeHoldRequest struct {
	Value     optional[money.MicroUSD] `json:"value_usd"`
	ExpiresIn optional[int64]          `json:"expires_in_seconds"` // from now
}

func (r *changeHoldRequest) hold() (redisstore.NewHold, error) {
	var v validation
	var n redisstore.NewHold
	if r.Value.given {
		n.Value = &r.Value.value
	}
	if r.ExpiresIn.given {
		v.within("expires_in_seconds", r.ExpiresIn.value, 1, maxLifetimeSeconds)
		lifetime := time.Duration(r.ExpiresIn.value) * time.Second
		n.Lifetime = &lifetime
	}
	v.require(n != (redisstore.NewHold{}), "", "name at least one of value_usd and expires_in_seconds")
	return n, v.err()
}

// changeHold changes the held value or the expiry of a pending transaction.
func (s *Server) changeHold(ctx *fasthttp.RequestCtx) error {
	agent, id, err := s.agentAndID(ctx)
	if err != nil {
		return err
	}
	var request changeHoldRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.hold()
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = idempotencyOf(ctx, "change hold", id); err != nil {
		return err
	}
	changed, err := s.store.ChangeHold(requestContext(ctx), agent, id, wanted)
	s.reportReplay(ctx, wanted.Idempotency)
	if err != nil {
		s.metrics.refusedByAgent(err)
		return redisstore.Needing(err, 0, request.Value.value)
	}
	s.metrics.observed(changed.WouldRefuse, false, wanted.Idempotency)
	return answer(ctx, transactionOf(changed))
}
