package budgets

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/web"
)

// ChangeLimitsRequest is the body of a request that changes a session's limits.
type ChangeLimitsRequest struct {
	MaxActions web.Optional[int64]          `json:"max_actions"`
	MaxValue   web.Optional[money.MicroUSD] `json:"max_value_usd"`
	AddActions web.Optional[int64]          `json:"add_actions"`
	AddValue   web.Optional[money.MicroUSD] `json:"add_value_usd"`
	ExpiresIn  web.Optional[int64]          `json:"expires_in_seconds"` // from now
	MaxLease   web.Optional[int64]          `json:"max_lease_seconds"`
	PerAction  web.Nullable[money.MicroUSD] `json:"max_value_usd_per_action"`

	Enforcement web.Optional[string] `json:"enforcement"`
	Thresholds  web.Nullable[[]int]  `json:"thresholds"`
}

func (r *ChangeLimitsRequest) limits() (redisstore.NewLimits, error) {
	var v web.Validation
	n := redisstore.NewLimits{
		MaxActions: r.MaxActions.Pointer(), MaxValue: r.MaxValue.Pointer(), AddActions: r.AddActions.Pointer(), AddValue: r.AddValue.Pointer(),
	}
	v.Within("max_actions", r.MaxActions.Or(1), 1, maxActionsLimit)
	if r.AddActions.Given {
		v.Require(!r.MaxActions.Given, "add_actions", "cannot be given together with max_actions")
		v.Within("add_actions", r.AddActions.Value, 1, maxActionsLimit)
	}
	if r.AddValue.Given {
		v.Require(!r.MaxValue.Given, "add_value_usd", "cannot be given together with max_value_usd")
		v.Require(r.AddValue.Value > 0, "add_value_usd", "must be more than 0")
	}
	if r.ExpiresIn.Given {
		v.Within("expires_in_seconds", r.ExpiresIn.Value, 1, web.MaxLifetimeSeconds)
		n.Lifetime = new(time.Duration(r.ExpiresIn.Value) * time.Second)
	}
	if r.MaxLease.Given {
		v.Within("max_lease_seconds", r.MaxLease.Value, 0, maxLeaseSeconds)
		n.MaxLease = new(time.Duration(r.MaxLease.Value) * time.Second)
	}
	if observes := validEnforcement(&v, r.Enforcement); r.Enforcement.Given {
		n.Observes = &observes
	}
	n.PerAction = redisstore.LimitChange{Given: r.PerAction.Given, Value: (*int64)(r.PerAction.Value)}
	if thresholds := validThresholds(&v, r.Thresholds); r.Thresholds.Given {
		n.Thresholds = &thresholds
	}
	v.Require(n != (redisstore.NewLimits{}), "", "name at least one of max_actions, max_value_usd, add_actions, add_value_usd, expires_in_seconds, max_lease_seconds, enforcement, max_value_usd_per_action and thresholds")
	return n, v.Err()
}

// changeLimits raises or lowers the limits of an active session.
func (h *Handlers) changeLimits(ctx *fasthttp.RequestCtx, key redisstore.APIKey, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, (*ChangeLimitsRequest).limits)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "change limits", id); err != nil {
		return err
	}
	session, err := h.Store.ChangeLimits(web.RequestContext(ctx), key, id, wanted)
	var above *redisstore.AboveBoundsError
	if errors.As(err, &above) {
		return aboveBounds(above.Limit)
	}
	if errors.Is(err, redisstore.ErrParentEnforces) {
		return errParentEnforces
	}
	if err != nil {
		return AsConflict(err)
	}
	return web.Answer(ctx, SessionOf(session))
}

// errParentEnforces refuses a child that is to observe.
var errParentEnforces = web.Invalid("enforcement", "must be enforce, because the parent session enforces its limits")

// aboveBounds refuses an addition that would exceed the bounds of a limit.
func aboveBounds(limit string) error {
	if limit == "max_actions" {
		return web.Invalid("add_actions", "must not make max_actions more than 1000000000")
	}
	return web.Invalid("add_value_usd", "must not make max_value_usd more than 1000000000")
}

// conflict refuses to end or change a session that is not active, with 409. A charge of such a session is refused with 403.
type conflict struct{ cause *redisstore.NotActiveError }

func (e *conflict) Error() string { return e.cause.Error() }

// AsConflict turns a refusal for the status of a session into a conflict.
func AsConflict(err error) error {
	var notActive *redisstore.NotActiveError
	if errors.As(err, &notActive) {
		return &conflict{notActive}
	}
	return err
}

func (e *conflict) Problem() web.Problem {
	p := web.NewProblem(409, "session_not_active", e.Error())
	p.SessionStatus = e.cause.Status
	return p
}
