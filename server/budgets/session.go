package budgets

import (
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) sessionRoutes(r *web.Routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.Post(prefix+"/sessions", redisstore.Operator, h.byCreator(h.createSession))
		r.Get(prefix+"/sessions", redisstore.Viewer, h.Guard.ByEither(h.listSessions))
		r.Get(prefix+"/sessions/{id}", redisstore.Viewer, h.Guard.ByEitherAt(h.getSession))
		r.Patch(prefix+"/sessions/{id}", redisstore.Operator, access.ByKeyAt(h.changeLimits))
		r.Post(prefix+"/sessions/{id}/end", redisstore.Operator, h.Guard.ByEitherAt(h.endSession))
		r.Get(prefix+"/sessions/{id}/tree", redisstore.Viewer, h.Guard.ByEitherAt(h.getSessionTree))
		r.Get(prefix+"/sessions/{id}/usage", redisstore.Viewer, h.Guard.ByEitherAt(h.getSessionUsage))
	}
}

const (
	maxActionsLimit = redisstore.MostActions
)

// CreateSessionRequest is the body of a request that creates a session.
type CreateSessionRequest struct {
	Agent        web.Optional[string]         `json:"agent_id"`
	Parent       web.Optional[string]         `json:"parent_session_id"`
	MaxActions   web.Optional[int64]          `json:"max_actions"`
	MaxValue     web.Optional[money.MicroUSD] `json:"max_value_usd"`
	MaxCommitted web.Optional[money.MicroUSD] `json:"max_committed_usd"`
	ExpiresIn    web.Optional[int64]          `json:"expires_in_seconds"`
	MaxLease     web.Optional[int64]          `json:"max_lease_seconds"`
	MaxPerAction web.Nullable[money.MicroUSD] `json:"max_value_usd_per_action"`
	Scopes       web.Optional[[]string]       `json:"scopes"`
	Metadata     web.Optional[jsontext.Value] `json:"metadata"`
	Enforcement  web.Optional[string]         `json:"enforcement"`
	Thresholds   web.Nullable[[]int]          `json:"thresholds"`
}

func (h *Handlers) newSession(r *CreateSessionRequest) (redisstore.NewSession, error) {
	var v web.Validation
	n := redisstore.NewSession{
		Agent:      v.ID("agent_id", r.Agent),
		MaxActions: r.MaxActions.Or(h.Defaults.MaxActions),
		MaxValue:   r.MaxValue.Or(h.Defaults.MaxValue),
		Scopes:     r.Scopes.Value, MaxPerAction: r.MaxPerAction.Value,
		Metadata: v.Object("metadata", r.Metadata, web.MaxMetadata), MaxCommitted: r.MaxCommitted.Pointer(),
	}
	if r.Parent.Given {
		n.Parent, n.FitActions, n.FitValue = v.ID("parent_session_id", r.Parent), !r.MaxActions.Given, !r.MaxValue.Given
	}
	lifetime := r.ExpiresIn.Or(int64(h.Defaults.Lifetime / time.Second))
	v.Within("max_actions", n.MaxActions, 1, maxActionsLimit)
	v.Within("expires_in_seconds", lifetime, 1, web.MaxLifetimeSeconds)
	v.Within("max_lease_seconds", r.MaxLease.Value, 0, maxLeaseSeconds)
	n.MaxLease = time.Duration(r.MaxLease.Value) * time.Second
	v.Scopes(n.Scopes)
	n.Observes = validEnforcement(&v, r.Enforcement)
	n.Thresholds = validThresholds(&v, r.Thresholds)
	n.Lifetime = time.Duration(lifetime) * time.Second
	return n, v.Err()
}

// Whether a session refuses what exceeds its limits.
const (
	enforces = "enforce"
	Observes = "observe" // it does it and counts it
)

// validThresholds returns thresholds in ascending order, nil for the default.
func validThresholds(v *web.Validation, given web.Nullable[[]int]) redisstore.Thresholds {
	if given.Value == nil {
		return nil
	}
	t := redisstore.Thresholds(slices.Clone(*given.Value))
	slices.Sort(t)
	v.Require(len(t) <= redisstore.MostThresholds, "thresholds", "must be at most 8 percents")
	v.Require(len(t) == 0 || t[0] >= 1 && t[len(t)-1] <= 100, "thresholds", "must be percents from 1 to 100")
	v.Require(len(slices.Compact(slices.Clone(t))) == len(t), "thresholds", "must not have a percent twice")
	switch {
	case slices.Equal(t, redisstore.DefaultThresholds):
		return nil
	case len(t) == 0:
		return redisstore.Thresholds{}
	}
	return t
}

// validEnforcement returns whether the session is to observe.
func validEnforcement(v *web.Validation, given web.Optional[string]) bool {
	v.Require(!given.Given || given.Value == enforces || given.Value == Observes, "enforcement", "must be enforce or observe")
	return given.Value == Observes
}

// append writes the summary as the encoder would.
func (a SessionSummary) append(o web.Object) web.Object {
	o = o.ID(`{"id":`, a.ID)
	o = o.ID(`,"agent_id":`, a.Agent)
	o = o.Plain(`,"status":`, string(a.Status))
	o = o.Number(`,"action_count":`, a.ActionCount)
	o = o.Number(`,"max_actions":`, a.MaxActions)
	o = o.Amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.Amount(`,"max_value_usd":`, a.MaxValue)
	o = o.Time(`,"expires_at":`, a.Expires)
	return append(o, '}')
}

// SessionAnswer is a session in a response about it alone.
type SessionAnswer struct {
	ID               uuid.UUID         `json:"id"`
	Agent            uuid.UUID         `json:"agent_id"`
	Status           redisstore.Status `json:"status"`
	MaxActions       int64             `json:"max_actions"`
	ActionCount      int64             `json:"action_count"`
	MaxValue         money.MicroUSD    `json:"max_value_usd"`
	ValueUsed        money.MicroUSD    `json:"value_used_usd"`
	ValueHeld        money.MicroUSD    `json:"value_held_usd"`
	Overage          money.MicroUSD    `json:"value_overage_usd"`
	Committed        money.MicroUSD    `json:"value_committed_usd"` // rollbacks do not lower it
	MaxCommitted     *money.MicroUSD   `json:"max_committed_usd,omitzero"`
	MaxLease         int64             `json:"max_lease_seconds"`
	Scopes           []string          `json:"scopes"`
	Metadata         jsontext.Value    `json:"metadata"`
	Expires          web.Timestamp     `json:"expires_at"`
	Created          web.Timestamp     `json:"created_at"`
	Ended            web.Timestamp     `json:"ended_at,omitzero"`
	Suspended        web.Timestamp     `json:"suspended_at,omitzero"`
	SuspensionReason string            `json:"suspension_reason,omitzero"`
	Enforcement      string            `json:"enforcement"`
	Observed         *int64            `json:"observed_refusals,omitzero"` // of a session that observes or has observed
	MaxPerAction     *money.MicroUSD   `json:"max_value_usd_per_action,omitzero"`
	Thresholds       []int             `json:"thresholds,omitzero"` // absent for the default

	Parent           uuid.UUID       `json:"parent_session_id,omitzero"`
	DelegatedActions *int64          `json:"actions_delegated,omitzero"`
	DelegatedValue   *money.MicroUSD `json:"value_delegated_usd,omitzero"`
}

// SessionOf returns a session as responses show it.
func SessionOf(v redisstore.Session) SessionAnswer {
	enforcement := enforces
	if v.Observes {
		enforcement = Observes
	}
	a := SessionAnswer{
		ID: v.ID, Agent: v.Agent, Status: v.Status,
		MaxActions: v.MaxActions, ActionCount: v.ActionCount,
		MaxValue: v.MaxValue, ValueUsed: v.ValueUsed, ValueHeld: v.ValueHeld, Overage: v.ValueOverage,
		Committed: v.ValueCommitted, MaxCommitted: v.MaxCommitted, MaxLease: int64(v.MaxLease / time.Second),
		Scopes: v.Scopes, Metadata: web.MetadataOf(v.Metadata),
		Expires: web.Timestamp(v.Expires), Created: web.Timestamp(v.Created), Ended: web.Timestamp(v.Ended),
		Suspended: web.Timestamp(v.Suspended), SuspensionReason: v.SuspensionReason,
		Enforcement: enforcement, Observed: v.ObservedRefusals, MaxPerAction: v.MaxPerAction,
		Thresholds: v.Thresholds,
		Parent:     v.Parent,
	}
	if d := v.Delegated; d != nil {
		a.DelegatedActions, a.DelegatedValue = &d.Actions, &d.Value
	}
	return a
}

func (h *Handlers) createSession(ctx *fasthttp.RequestCtx, caller access.Caller) error {
	wanted, err := web.Decoded(ctx, h.newSession)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "create session", wanted.Agent); err != nil {
		return err
	}
	if err := checkCreator(caller, wanted); err != nil {
		return err
	}
	wanted.Held = caller.Scopes
	create := h.Store.CreateChildSession
	if wanted.Parent == uuid.Nil {
		create = h.Store.CreateRootSession
	}
	session, err := create(web.RequestContext(ctx), caller.Caller, wanted)
	var held *redisstore.ScopeError
	if errors.As(err, &held) && wanted.Parent == uuid.Nil {
		return web.Invalid("scopes", "must be scopes of the agent; it does not have "+held.Scope)
	}
	if errors.Is(err, redisstore.ErrParentEnforces) {
		return errParentEnforces
	}
	if err != nil {
		h.counted.refusedByAgent(err)
		return redisstore.Needing(err, least(wanted.MaxActions, wanted.FitActions), least(wanted.MaxValue, wanted.FitValue))
	}
	if !wanted.Idempotency.IsReplay() {
		h.counted.sessionsCreated.Inc()
	}
	return web.AnswerCreated(ctx, "/v1/sessions/"+session.ID.String(), SessionOf(session))
}

// least is what a creation needs of a limit: 1 of one that fits into what is left.
func least[T int64 | money.MicroUSD](limit T, fits bool) T {
	if fits {
		return min(limit, 1)
	}
	return limit
}

func (h *Handlers) getSession(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	session, err := h.Store.Session(web.RequestContext(ctx), caller.Caller, id)
	if err != nil {
		return err
	}
	var room [web.AnswerSize]byte
	written, err := SessionOf(session).append(room[:0])
	if err != nil {
		return err
	}
	return web.AnswerWritten(ctx, written)
}

// EndedAnswer is the response to the end of a session.
type EndedAnswer struct {
	ID     uuid.UUID         `json:"id"`
	Status redisstore.Status `json:"status"`
	Ended  web.Timestamp     `json:"ended_at"`
}

func (h *Handlers) endSession(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	if err := web.Decode(ctx, &web.Nothing{}); err != nil {
		return err
	}
	ended, err := h.Store.EndSession(web.RequestContext(ctx), caller.Caller, id)
	if err != nil {
		return AsConflict(err)
	}
	h.counted.sessionsEnded.Inc()
	return web.Answer(ctx, EndedAnswer{id, redisstore.Completed, web.Timestamp(ended)})
}

// append writes the session as the encoder would. The decoder has validated its metadata, which may contain white space.
func (a SessionAnswer) append(o web.Object) (web.Object, error) {
	o = o.ID(`{"id":`, a.ID)
	o = o.ID(`,"agent_id":`, a.Agent)
	o = o.Plain(`,"status":`, string(a.Status))
	o = o.Number(`,"max_actions":`, a.MaxActions)
	o = o.Number(`,"action_count":`, a.ActionCount)
	o = o.Amount(`,"max_value_usd":`, a.MaxValue)
	o = o.Amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.Amount(`,"value_held_usd":`, a.ValueHeld)
	o = o.Amount(`,"value_overage_usd":`, a.Overage)
	o = o.Amount(`,"value_committed_usd":`, a.Committed)
	if a.MaxCommitted != nil {
		o = o.Amount(`,"max_committed_usd":`, *a.MaxCommitted)
	}
	o = o.Number(`,"max_lease_seconds":`, a.MaxLease)
	o = o.Plains(`,"scopes":`, a.Scopes)
	o = append(o, `,"metadata":`...)
	var err error
	if o, err = jsontext.AppendFormat(o, a.Metadata); err != nil {
		return nil, err
	}
	o = o.Time(`,"expires_at":`, a.Expires)
	o = o.Time(`,"created_at":`, a.Created)
	if !a.Ended.IsZero() {
		o = o.Time(`,"ended_at":`, a.Ended)
	}
	if !a.Suspended.IsZero() {
		o = o.Time(`,"suspended_at":`, a.Suspended)
	}
	if a.SuspensionReason != "" {
		o, err = o.Text(`,"suspension_reason":`, a.SuspensionReason)
	}
	o = o.Plain(`,"enforcement":`, a.Enforcement)
	if a.Observed != nil {
		o = o.Number(`,"observed_refusals":`, *a.Observed)
	}
	if a.MaxPerAction != nil {
		o = o.Amount(`,"max_value_usd_per_action":`, *a.MaxPerAction)
	}
	if a.Thresholds != nil {
		o = o.Percents(`,"thresholds":`, a.Thresholds)
	}
	if a.Parent != uuid.Nil {
		o = o.ID(`,"parent_session_id":`, a.Parent)
	}
	if a.DelegatedActions != nil {
		o = o.Number(`,"actions_delegated":`, *a.DelegatedActions)
		o = o.Amount(`,"value_delegated_usd":`, *a.DelegatedValue)
	}
	return append(o, '}'), err
}
