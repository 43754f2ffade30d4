package server

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

func (s *Server) leaseRoutes(r *routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.post(prefix+"/sessions/{id}/leases", redisstore.Operator, s.grantLease)
	}
	r.get("/v1/leases/{id}", redisstore.Viewer, s.getLease)
	r.post("/v1/leases/{id}/settle", redisstore.Operator, s.settleLease)
}

const (
	maxLeaseSeconds    = 3600
	maxTypesOfActions  = 64
	notEmpty           = "must be more than 0, unless max_value_usd is"
	doesNotSum         = "must add up to the totals of the settlement"
	tooManyActionTypes = "must have at most 64 action types"
)

type leaseRequest struct {
	MaxActions optional[int64]          `json:"max_actions"`
	MaxValue   optional[money.MicroUSD] `json:"max_value_usd"`
	ExpiresIn  optional[int64]          `json:"expires_in_seconds"`
	Partial    optional[bool]           `json:"partial"`
}

func (r *leaseRequest) lease() (redisstore.NewLease, error) {
	var v validation
	n := r.check(&v, "")
	return n, v.err()
}

// check reads a lease whose fields have this prefix in errors.
func (r *leaseRequest) check(v *validation, prefix string) redisstore.NewLease {
	v.within(prefix+"max_actions", r.MaxActions.value, 0, maxActionsLimit)
	v.require(r.MaxActions.value != 0 || r.MaxValue.value != 0, prefix+"max_actions", notEmpty)
	v.require(r.ExpiresIn.given, prefix+"expires_in_seconds", "is required")
	v.within(prefix+"expires_in_seconds", r.ExpiresIn.or(1), 1, maxLeaseSeconds)
	return redisstore.NewLease{
		MaxActions: r.MaxActions.value, MaxValue: r.MaxValue.value, Partial: r.Partial.value,
		Lifetime: time.Duration(r.ExpiresIn.value) * time.Second,
	}
}

type actionTypeUsage struct {
	ActionCount optional[int64]          `json:"action_count"`
	Value       optional[money.MicroUSD] `json:"value_usd"`
}

type settleRequest struct {
	ActionCount optional[int64]                      `json:"action_count"`
	ValueUsed   optional[money.MicroUSD]             `json:"value_used_usd"`
	ByType      optional[map[string]actionTypeUsage] `json:"by_action_type"` // for reports of usage
	Renew       optional[leaseRequest]               `json:"renew"`
}

func (r *settleRequest) settlement() (redisstore.NewSettlement, error) {
	var v validation
	v.require(r.ActionCount.given, "action_count", "is required")
	v.within("action_count", r.ActionCount.value, 0, maxActionsLimit)
	v.require(r.ValueUsed.given, "value_used_usd", "is required")
	if r.ByType.given {
		r.checkTypes(&v)
	}
	n := redisstore.NewSettlement{ActionCount: r.ActionCount.value, ValueUsed: r.ValueUsed.value, Types: r.types()}
	if r.Renew.given {
		wanted := r.Renew.value.check(&v, "renew.")
		n.Renew = &wanted
	}
	return n, v.err()
}

// types returns the usage by action type in the order of their names: the store keeps the first 64 of a session apart.
func (r *settleRequest) types() []redisstore.TypeUsage {
	types := make([]redisstore.TypeUsage, 0, len(r.ByType.value))
	for name, used := range r.ByType.value {
		types = append(types, redisstore.TypeUsage{ActionType: name, ActionCount: used.ActionCount.value, Value: used.Value.value})
	}
	slices.SortFunc(types, func(a, b redisstore.TypeUsage) int { return strings.Compare(a.ActionType, b.ActionType) })
	return types
}

// checkTypes checks that the usage by action type adds up.
func (r *settleRequest) checkTypes(v *validation) {
	if len(r.ByType.value) > maxTypesOfActions {
		v.add("by_action_type", tooManyActionTypes)
		return
	}
	var actions int64
	var value money.MicroUSD
	for name, used := range r.ByType.value {
		field := "by_action_type." + shown(name)
		v.require(isActionType(name), field, notAnActionType)
		v.require(used.ActionCount.given, field+".action_count", "is required")
		v.within(field+".action_count", used.ActionCount.value, 0, maxActionsLimit)
		v.require(used.Value.given, field+".value_usd", "is required")
		actions += min(used.ActionCount.value, maxActionsLimit)
		value += used.Value.value // at most 64 times money.Max
	}
	v.require(len(v.fields) > 0 || actions == r.ActionCount.value && value == r.ValueUsed.value, "by_action_type", doesNotSum)
}

// leaseAnswer is a lease, and what it was settled with.
type leaseAnswer struct {
	ID         uuid.UUID         `json:"id"`
	Session    uuid.UUID         `json:"session_id"`
	Status     redisstore.Status `json:"status"`
	MaxActions int64             `json:"max_actions"`
	MaxValue   money.MicroUSD    `json:"max_value_usd"`
	Created    timestamp         `json:"created_at"`
	Expires    timestamp         `json:"expires_at"`
	*leaseUsage

	WouldRefuse string `json:"would_refuse,omitzero"` // the limit, of a grant in a session that observes
}

// leaseUsage is what a lease was settled with.
type leaseUsage struct {
	ActionCount    int64          `json:"action_count"`
	ValueUsed      money.MicroUSD `json:"value_used_usd"`
	Overage        money.MicroUSD `json:"overage_usd"`
	OverageActions int64          `json:"overage_actions"`
	Late           bool           `json:"late"`
	Settled        timestamp      `json:"settled_at"`
}

func leaseOf(l redisstore.Lease) leaseAnswer {
	a := leaseAnswer{
		ID: l.ID, Session: l.Session, Status: l.Status, MaxActions: l.MaxActions, MaxValue: l.MaxValue,
		Created: timestamp(l.Created), Expires: timestamp(l.Expires), WouldRefuse: l.WouldRefuse,
	}
	if l.Settlement != nil {
		used := leaseUsageOf(*l.Settlement)
		a.leaseUsage = &used
	}
	return a
}

func leaseUsageOf(v redisstore.Settlement) leaseUsage {
	return leaseUsage{v.ActionCount, v.ValueUsed, v.Overage, v.OverageActions, v.Late, timestamp(v.Settled)}
}

// settlementAnswer is a settlement with the lease that renews the settled one, or why there is none.
type settlementAnswer struct {
	ID      uuid.UUID         `json:"id"`
	Session uuid.UUID         `json:"session_id"`
	Status  redisstore.Status `json:"status"`
	leaseUsage
	Renewed *leaseAnswer    `json:"renewed"`
	Refusal *refusedRenewal `json:"refusal"`
}

// refusedRenewal says why no renewal was granted, as the problem of a grant would.
type refusedRenewal struct {
	Code   string `json:"code"`
	Limit  string `json:"limit,omitzero"`
	Detail string `json:"detail"`
	*needed
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

func settlementOf(l redisstore.Lease) settlementAnswer {
	a := settlementAnswer{ID: l.ID, Session: l.Session, Status: l.Status, leaseUsage: leaseUsageOf(*l.Settlement)}
	if renewed := l.Settlement.Renewed; renewed != nil {
		next := leaseOf(*renewed)
		a.Renewed = &next
	}
	if code := l.Settlement.Refusal; code != "" {
		a.Refusal = &refusedRenewal{code, l.Settlement.Limit, renewalRefusals[code], neededOf(l.Settlement.Needed)}
	}
	return a
}

// grantLease grants a part of a session's limits that its holder spends without asking.
func (s *Server) grantLease(ctx *fasthttp.RequestCtx) error {
	caller, id, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	var request leaseRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.lease()
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = idempotencyOf(ctx, "grant lease", id); err != nil {
		return err
	}
	granted, err := s.store.GrantLease(requestContext(ctx), caller.Caller, id, wanted)
	s.reportReplay(ctx, wanted.Idempotency)
	if err != nil {
		s.metrics.refusedByAgent(err)
		return redisstore.Needing(err, wanted.MaxActions, wanted.MaxValue)
	}
	if !isReplay(wanted.Idempotency) {
		s.metrics.leases.granted.Inc()
		s.metrics.charges.inLeases.Add(float64(granted.MaxValue))
	}
	s.metrics.observed(granted.WouldRefuse, false, wanted.Idempotency)
	return answerCreated(ctx, "/v1/leases/"+granted.ID.String(), leaseOf(granted))
}

// settleLease books what was spent of a lease, and may grant its renewal in the same step.
func (s *Server) settleLease(ctx *fasthttp.RequestCtx) error {
	caller, id, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	var request settleRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.settlement()
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = idempotencyOf(ctx, "settle lease", id); err != nil {
		return err
	}
	settled, err := s.store.SettleLease(requestContext(ctx), caller.Caller, id, wanted)
	s.reportReplay(ctx, wanted.Idempotency)
	if err != nil {
		return err
	}
	s.metrics.settled(*settled.Settlement)
	return answer(ctx, settlementOf(settled))
}

func (s *Server) getLease(ctx *fasthttp.RequestCtx) error {
	caller, id, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	l, err := s.store.Lease(requestContext(ctx), caller.Caller, id)
	if err != nil {
		return err
	}
	return answer(ctx, leaseOf(l))
}
