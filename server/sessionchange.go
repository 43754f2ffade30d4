package server

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

type changeLimitsRequest struct {
	MaxActions optional[int64]          `json:"max_actions"`
	MaxValue   optional[money.MicroUSD] `json:"max_value_usd"`
	AddActions optional[int64]          `json:"add_actions"`
	AddValue   optional[money.MicroUSD] `json:"add_value_usd"`
	ExpiresIn  optional[int64]          `json:"expires_in_seconds"` // from now
	MaxLease   optional[int64]          `json:"max_lease_seconds"`
	PerAction  nullable[money.MicroUSD] `json:"max_value_usd_per_action"`

	Enforcement optional[string] `json:"enforcement"`
	Thresholds  nullable[[]int]  `json:"thresholds"`
}

func (r *changeLimitsRequest) limits() (redisstore.NewLimits, error) {
	var v validation
	var n redisstore.NewLimits
	if r.MaxActions.given {
		v.within("max_actions", r.MaxActions.value, 1, maxActionsLimit)
		n.MaxActions = &r.MaxActions.value
	}
	if r.MaxValue.given {
		n.MaxValue = &r.MaxValue.value
	}
	if r.AddActions.given {
		v.require(!r.MaxActions.given, "add_actions", "cannot be given together with max_actions")
		v.within("add_actions", r.AddActions.value, 1, maxActionsLimit)
		n.AddActions = &r.AddActions.value
	}
	if r.AddValue.given {
		v.require(!r.MaxValue.given, "add_value_usd", "cannot be given together with max_value_usd")
		v.require(r.AddValue.value > 0, "add_value_usd", "must be more than 0")
		n.AddValue = &r.AddValue.value
	}
	if r.ExpiresIn.given {
		v.within("expires_in_seconds", r.ExpiresIn.value, 1, maxLifetimeSeconds)
		lifetime := time.Duration(r.ExpiresIn.value) * time.Second
		n.Lifetime = &lifetime
	}
	if r.MaxLease.given {
		v.within("max_lease_seconds", r.MaxLease.value, 0, maxLeaseSeconds)
		longest := time.Duration(r.MaxLease.value) * time.Second
		n.MaxLease = &longest
	}
	if observes := validEnforcement(&v, r.Enforcement); r.Enforcement.given {
		n.Observes = &observes
	}
	n.PerAction = redisstore.LimitChange{Given: r.PerAction.given, Value: (*int64)(r.PerAction.value)}
	if thresholds := validThresholds(&v, r.Thresholds); r.Thresholds.given {
		n.Thresholds = &thresholds
	}
	v.require(n != (redisstore.NewLimits{}), "", "name at least one of max_actions, max_value_usd, add_actions, add_value_usd, expires_in_seconds, max_lease_seconds, enforcement, max_value_usd_per_action and thresholds")
	return n, v.err()
}

// changeLimits raises or lowers the limits of an active session.
func (s *Server) changeLimits(ctx *fasthttp.RequestCtx) error {
	key, err := organizationKey(ctx)
	if err != nil {
		return err
	}
	id, err := pathID(ctx)
	if err != nil {
		return err
	}
	var request changeLimitsRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.limits()
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = idempotencyOf(ctx, "change limits", id); err != nil {
		return err
	}
	session, err := s.store.ChangeLimits(requestContext(ctx), key, id, wanted)
	s.reportReplay(ctx, wanted.Idempotency)
	var above *redisstore.AboveBoundsError
	if errors.As(err, &above) {
		return aboveBounds(above.Limit)
	}
	if errors.Is(err, redisstore.ErrParentEnforces) {
		return errParentEnforces
	}
	if err != nil {
		return asConflict(err)
	}
	return answer(ctx, sessionOf(session))
}

// errParentEnforces refuses a child that is to observe.
var errParentEnforces = invalid("enforcement", "must be enforce, because the parent session enforces its limits")

// aboveBounds refuses an addition that would exceed the bounds of a limit.
func aboveBounds(limit string) error {
	if limit == "max_actions" {
		return invalid("add_actions", "must not make max_actions more than 1000000000")
	}
	return invalid("add_value_usd", "must not make max_value_usd more than 1000000000")
}
