package budgets

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) leaseRoutes(r *web.Routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.Post(prefix+"/sessions/{id}/leases", redisstore.Operator, h.Guard.ByEitherAt(h.grantLease))
	}
	r.Get("/v1/leases/{id}", redisstore.Viewer, h.Guard.ByEitherAt(h.getLease))
	r.Post("/v1/leases/{id}/settle", redisstore.Operator, h.Guard.ByEitherAt(h.settleLease))
}

const (
	maxLeaseSeconds    = 3600
	maxTypesOfActions  = 64
	notEmpty           = "must be more than 0, unless max_value_usd is"
	doesNotSum         = "must add up to the totals of the settlement"
	tooManyActionTypes = "must have at most 64 action types"
)

// LeaseRequest is the body of a request for a lease.
type LeaseRequest struct {
	MaxActions web.Optional[int64]          `json:"max_actions"`
	MaxValue   web.Optional[money.MicroUSD] `json:"max_value_usd"`
	ExpiresIn  web.Optional[int64]          `json:"expires_in_seconds"`
	Partial    web.Optional[bool]           `json:"partial"`
}

func (r *LeaseRequest) lease() (redisstore.NewLease, error) {
	var v web.Validation
	n := r.check(&v, "")
	return n, v.Err()
}

// check reads a lease whose fields have this prefix in errors.
func (r *LeaseRequest) check(v *web.Validation, prefix string) redisstore.NewLease {
	v.Within(prefix+"max_actions", r.MaxActions.Value, 0, maxActionsLimit)
	v.Require(r.MaxActions.Value != 0 || r.MaxValue.Value != 0, prefix+"max_actions", notEmpty)
	v.Require(r.ExpiresIn.Given, prefix+"expires_in_seconds", "is required")
	v.Within(prefix+"expires_in_seconds", r.ExpiresIn.Or(1), 1, maxLeaseSeconds)
	return redisstore.NewLease{
		MaxActions: r.MaxActions.Value, MaxValue: r.MaxValue.Value, Partial: r.Partial.Value,
		Lifetime: time.Duration(r.ExpiresIn.Value) * time.Second,
	}
}

type actionTypeUsage struct {
	ActionCount web.Optional[int64]          `json:"action_count"`
	Value       web.Optional[money.MicroUSD] `json:"value_usd"`
}

type settleRequest struct {
	ActionCount web.Optional[int64]                      `json:"action_count"`
	ValueUsed   web.Optional[money.MicroUSD]             `json:"value_used_usd"`
	ByType      web.Optional[map[string]actionTypeUsage] `json:"by_action_type"` // for reports of usage
	Renew       web.Optional[LeaseRequest]               `json:"renew"`
}

func (r *settleRequest) settlement() (redisstore.NewSettlement, error) {
	var v web.Validation
	v.Require(r.ActionCount.Given, "action_count", "is required")
	v.Within("action_count", r.ActionCount.Value, 0, maxActionsLimit)
	v.Require(r.ValueUsed.Given, "value_used_usd", "is required")
	if r.ByType.Given {
		r.checkTypes(&v)
	}
	n := redisstore.NewSettlement{ActionCount: r.ActionCount.Value, ValueUsed: r.ValueUsed.Value, Types: r.types()}
	if r.Renew.Given {
		wanted := r.Renew.Value.check(&v, "renew.")
		n.Renew = &wanted
	}
	return n, v.Err()
}

// types returns the usage by action type in the order of their names: the store keeps the first 64 of a session apart.
func (r *settleRequest) types() []redisstore.TypeUsage {
	types := make([]redisstore.TypeUsage, 0, len(r.ByType.Value))
	for name, used := range r.ByType.Value {
		types = append(types, redisstore.TypeUsage{ActionType: name, ActionCount: used.ActionCount.Value, Value: used.Value.Value})
	}
	slices.SortFunc(types, func(a, b redisstore.TypeUsage) int { return strings.Compare(a.ActionType, b.ActionType) })
	return types
}

// checkTypes checks that the usage by action type adds up.
func (r *settleRequest) checkTypes(v *web.Validation) {
	if len(r.ByType.Value) > maxTypesOfActions {
		v.Add("by_action_type", tooManyActionTypes)
		return
	}
	var actions int64
	var value money.MicroUSD
	for name, used := range r.ByType.Value {
		field := "by_action_type." + web.Shown(name)
		v.Require(isActionType(name), field, notAnActionType)
		v.Require(used.ActionCount.Given, field+".action_count", "is required")
		v.Within(field+".action_count", used.ActionCount.Value, 0, maxActionsLimit)
		v.Require(used.Value.Given, field+".value_usd", "is required")
		actions += min(used.ActionCount.Value, maxActionsLimit)
		value += used.Value.Value // at most 64 times money.Max
	}
	v.Require(len(v.Fields) > 0 || actions == r.ActionCount.Value && value == r.ValueUsed.Value, "by_action_type", doesNotSum)
}

// LeaseAnswer is a lease, and what it was settled with.
type LeaseAnswer struct {
	ID         uuid.UUID         `json:"id"`
	Session    uuid.UUID         `json:"session_id"`
	Status     redisstore.Status `json:"status"`
	MaxActions int64             `json:"max_actions"`
	MaxValue   money.MicroUSD    `json:"max_value_usd"`
	Created    web.Timestamp     `json:"created_at"`
	Expires    web.Timestamp     `json:"expires_at"`
	*LeaseUsage

	WouldRefuse string `json:"would_refuse,omitzero"` // the limit, of a grant in a session that observes
}

// LeaseUsage is what a lease was settled with.
type LeaseUsage struct {
	ActionCount    int64          `json:"action_count"`
	ValueUsed      money.MicroUSD `json:"value_used_usd"`
	Overage        money.MicroUSD `json:"overage_usd"`
	OverageActions int64          `json:"overage_actions"`
	Late           bool           `json:"late"`
	Settled        web.Timestamp  `json:"settled_at"`
}

func leaseOf(l redisstore.Lease) LeaseAnswer {
	a := LeaseAnswer{
		ID: l.ID, Session: l.Session, Status: l.Status, MaxActions: l.MaxActions, MaxValue: l.MaxValue,
		Created: web.Timestamp(l.Created), Expires: web.Timestamp(l.Expires), WouldRefuse: l.WouldRefuse,
	}
	if l.Settlement != nil {
		used := leaseUsageOf(*l.Settlement)
		a.LeaseUsage = &used
	}
	return a
}

func leaseUsageOf(v redisstore.Settlement) LeaseUsage {
	return LeaseUsage{v.ActionCount, v.ValueUsed, v.Overage, v.OverageActions, v.Late, web.Timestamp(v.Settled)}
}

// SettlementAnswer is a settlement with the lease that renews the settled one, or why there is none.
type SettlementAnswer struct {
	ID      uuid.UUID         `json:"id"`
	Session uuid.UUID         `json:"session_id"`
	Status  redisstore.Status `json:"status"`
	LeaseUsage
	Renewed *LeaseAnswer    `json:"renewed"`
	Refusal *RefusedRenewal `json:"refusal"`
}

// RefusedRenewal says why no renewal was granted, as the problem of a grant would.
type RefusedRenewal struct {
	Code   string `json:"code"`
	Limit  string `json:"limit,omitzero"`
	Detail string `json:"detail"`
	*web.Needed
}

// renewalRefusals are the details of refused renewals by their codes.
var renewalRefusals = map[string]string{
	"session_limit_reached": "the renewal does not fit into what the session may still do",
	"agent_limit_reached":   "the renewal does not fit into what the agent may still do",
	"session_not_active":    "the session is no longer active",
	"agent_suspended":       "the agent is suspended",
	"session_suspended":     "the session is suspended",
	"quota_exceeded":        "your organization has reached its quota of bytes",
	"rate_limited":          "your organization creates too much, or the agent acts too fast",
	"unavailable":           "the store cannot take another lease now",
}

func settlementOf(l redisstore.Lease) SettlementAnswer {
	a := SettlementAnswer{ID: l.ID, Session: l.Session, Status: l.Status, LeaseUsage: leaseUsageOf(*l.Settlement)}
	if renewed := l.Settlement.Renewed; renewed != nil {
		next := leaseOf(*renewed)
		a.Renewed = &next
	}
	if code := l.Settlement.Refusal; code != "" {
		a.Refusal = &RefusedRenewal{code, l.Settlement.Limit, renewalRefusals[code], web.NeededOf(l.Settlement.Needed)}
	}
	return a
}

// grantLease grants a part of a session's limits that its holder spends without asking.
func (h *Handlers) grantLease(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, (*LeaseRequest).lease)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "grant lease", id); err != nil {
		return err
	}
	granted, err := h.Store.GrantLease(web.RequestContext(ctx), caller.Caller, id, wanted)
	if err != nil {
		h.counted.refusedByAgent(err)
		return redisstore.Needing(err, wanted.MaxActions, wanted.MaxValue)
	}
	if !wanted.Idempotency.IsReplay() {
		h.counted.leases.granted.Inc()
		h.counted.charges.inLeases.Add(float64(granted.MaxValue))
	}
	h.counted.observed(granted.WouldRefuse, false, wanted.Idempotency)
	return web.AnswerCreated(ctx, "/v1/leases/"+granted.ID.String(), leaseOf(granted))
}

// settleLease charges what was spent of a lease, and may grant its renewal in the same step.
func (h *Handlers) settleLease(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, (*settleRequest).settlement)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "settle lease", id); err != nil {
		return err
	}
	settled, err := h.Store.SettleLease(web.RequestContext(ctx), caller.Caller, id, wanted)
	if err != nil {
		return err
	}
	h.counted.settled(*settled.Settlement)
	return web.Answer(ctx, settlementOf(settled))
}

func (h *Handlers) getLease(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	l, err := h.Store.Lease(web.RequestContext(ctx), caller.Caller, id)
	return web.AnswerOf(ctx, leaseOf, l, err)
}
