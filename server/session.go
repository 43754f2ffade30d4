package server

import (
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

func (s *Server) sessionRoutes(r *routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.post(prefix+"/sessions", redisstore.Operator, s.createSession)
		r.get(prefix+"/sessions", redisstore.Viewer, s.listSessions)
		r.get(prefix+"/sessions/{id}", redisstore.Viewer, s.getSession)
		r.patch(prefix+"/sessions/{id}", redisstore.Operator, s.changeLimits)
		r.post(prefix+"/sessions/{id}/end", redisstore.Operator, s.endSession)
		r.get(prefix+"/sessions/{id}/tree", redisstore.Viewer, s.getSessionTree)
	}
}

const (
	maxActionsLimit = redisstore.MostActions
)

type createSessionRequest struct {
	Agent        optional[string]         `json:"agent_id"`
	Parent       optional[string]         `json:"parent_session_id"`
	MaxActions   optional[int64]          `json:"max_actions"`
	MaxValue     optional[money.MicroUSD] `json:"max_value_usd"`
	MaxCommitted optional[money.MicroUSD] `json:"max_committed_usd"`
	ExpiresIn    optional[int64]          `json:"expires_in_seconds"`
	MaxLease     optional[int64]          `json:"max_lease_seconds"`
	MaxPerAction nullable[money.MicroUSD] `json:"max_value_usd_per_action"`
	Scopes       optional[[]string]       `json:"scopes"`
	Metadata     optional[jsontext.Value] `json:"metadata"`
	Enforcement  optional[string]         `json:"enforcement"`
	Thresholds   nullable[[]int]          `json:"thresholds"`
}

func (r *createSessionRequest) session(defaults SessionDefaults) (redisstore.NewSession, error) {
	var v validation
	n := redisstore.NewSession{
		Agent:      v.id("agent_id", r.Agent),
		MaxActions: r.MaxActions.or(defaults.MaxActions),
		MaxValue:   r.MaxValue.or(defaults.MaxValue),
		Scopes:     r.Scopes.value, MaxPerAction: r.MaxPerAction.value,
		Metadata: v.object("metadata", r.Metadata, maxMetadata),
	}
	if r.MaxCommitted.given {
		n.MaxCommitted = &r.MaxCommitted.value
	}
	if r.Parent.given {
		n.Parent, n.WithinParent = v.id("parent_session_id", r.Parent), !r.ExpiresIn.given
	}
	lifetime := r.ExpiresIn.or(int64(defaults.Lifetime / time.Second))
	v.within("max_actions", n.MaxActions, 1, maxActionsLimit)
	v.within("expires_in_seconds", lifetime, 1, maxLifetimeSeconds)
	v.within("max_lease_seconds", r.MaxLease.value, 0, maxLeaseSeconds)
	n.MaxLease = time.Duration(r.MaxLease.value) * time.Second
	v.scopes(n.Scopes)
	n.Observes = validEnforcement(&v, r.Enforcement)
	n.Thresholds = validThresholds(&v, r.Thresholds)
	n.Lifetime = time.Duration(lifetime) * time.Second
	return n, v.err()
}

// Whether a session refuses what exceeds its limits.
const (
	enforces = "enforce"
	observes = "observe" // it does it and counts it
)

// validThresholds returns thresholds in ascending order, nil for the default.
func validThresholds(v *validation, given nullable[[]int]) redisstore.Thresholds {
	if given.value == nil {
		return nil
	}
	t := redisstore.Thresholds(slices.Clone(*given.value))
	slices.Sort(t)
	v.require(len(t) <= redisstore.MostThresholds, "thresholds", "must be at most 8 percents")
	v.require(len(t) == 0 || t[0] >= 1 && t[len(t)-1] <= 100, "thresholds", "must be percents from 1 to 100")
	v.require(len(slices.Compact(slices.Clone(t))) == len(t), "thresholds", "must not have a percent twice")
	switch {
	case slices.Equal(t, redisstore.DefaultThresholds):
		return nil
	case len(t) == 0:
		return redisstore.Thresholds{}
	}
	return t
}

// validEnforcement returns whether the session is to observe.
func validEnforcement(v *validation, given optional[string]) bool {
	v.require(!given.given || given.value == enforces || given.value == observes, "enforcement", "must be enforce or observe")
	return given.value == observes
}

// append writes the summary as the encoder would.
func (a sessionSummary) append(o object) object {
	o = o.id(`{"id":`, a.ID)
	o = o.id(`,"agent_id":`, a.Agent)
	o = o.plain(`,"status":`, string(a.Status))
	o = o.number(`,"action_count":`, a.ActionCount)
	o = o.number(`,"max_actions":`, a.MaxActions)
	o = o.amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.amount(`,"max_value_usd":`, a.MaxValue)
	o = o.time(`,"expires_at":`, a.Expires)
	return append(o, '}')
}

type sessionAnswer struct {
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
	Expires          timestamp         `json:"expires_at"`
	Created          timestamp         `json:"created_at"`
	Ended            timestamp         `json:"ended_at,omitzero"`
	Suspended        timestamp         `json:"suspended_at,omitzero"`
	SuspensionReason string            `json:"suspension_reason,omitzero"`
	Enforcement      string            `json:"enforcement"`
	Observed         *int64            `json:"observed_refusals,omitzero"` // of a session that observes or has observed
	MaxPerAction     *money.MicroUSD   `json:"max_value_usd_per_action,omitzero"`
	Thresholds       []int             `json:"thresholds,omitzero"` // absent for the default

	Parent           uuid.UUID       `json:"parent_session_id,omitzero"`
	DelegatedActions *int64          `json:"actions_delegated,omitzero"`
	DelegatedValue   *money.MicroUSD `json:"value_delegated_usd,omitzero"`
}

func sessionOf(v redisstore.Session) sessionAnswer {
	enforcement := enforces
	if v.Observes {
		enforcement = observes
	}
	a := sessionAnswer{
		ID: v.ID, Agent: v.Agent, Status: v.Status,
		MaxActions: v.MaxActions, ActionCount: v.ActionCount,
		MaxValue: v.MaxValue, ValueUsed: v.ValueUsed, ValueHeld: v.ValueHeld, Overage: v.ValueOverage,
		Committed: v.ValueCommitted, MaxCommitted: v.MaxCommitted, MaxLease: int64(v.MaxLease / time.Second),
		Scopes: v.Scopes, Metadata: metadataOf(v.Metadata),
		Expires: timestamp(v.Expires), Created: timestamp(v.Created), Ended: timestamp(v.Ended),
		Suspended: timestamp(v.Suspended), SuspensionReason: v.SuspensionReason,
		Enforcement: enforcement, Observed: v.ObservedRefusals, MaxPerAction: v.MaxPerAction,
		Thresholds: v.Thresholds,
		Parent:     v.Parent,
	}
	if d := v.Delegated; d != nil {
		a.DelegatedActions, a.DelegatedValue = &d.Actions, &d.Value
	}
	return a
}

func (s *Server) createSession(ctx *fasthttp.RequestCtx) error {
	caller, err := s.sessionCreator(ctx)
	if err != nil {
		return err
	}
	var request createSessionRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	wanted, err := request.session(s.defaults)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = idempotencyOf(ctx, "create session", wanted.Agent); err != nil {
		return err
	}
	if err := caller.mayCreate(wanted); err != nil {
		return err
	}
	wanted.Held = caller.scopes
	create := s.store.CreateChildSession
	if wanted.Parent == uuid.Nil {
		create = s.store.CreateRootSession
	}
	session, err := create(requestContext(ctx), caller.Caller, wanted)
	s.reportReplay(ctx, wanted.Idempotency)
	var held *redisstore.ScopeError
	if errors.As(err, &held) && wanted.Parent == uuid.Nil {
		return invalid("scopes", "must be scopes of the agent; it does not have "+held.Scope)
	}
	if errors.Is(err, redisstore.ErrParentEnforces) {
		return errParentEnforces
	}
	if err != nil {
		s.metrics.refusedByAgent(err)
		return redisstore.Needing(err, wanted.MaxActions, wanted.MaxValue)
	}
	if !isReplay(wanted.Idempotency) {
		s.metrics.sessionsCreated.Inc()
	}
	return answerCreated(ctx, "/v1/sessions/"+session.ID.String(), sessionOf(session))
}

func (s *Server) getSession(ctx *fasthttp.RequestCtx) error {
	caller, id, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	session, err := s.store.Session(requestContext(ctx), caller.Caller, id)
	if err != nil {
		return err
	}
	var room [answerSize]byte
	written, err := sessionOf(session).append(room[:0])
	if err != nil {
		return err
	}
	return answerWritten(ctx, written)
}

type endedAnswer struct {
	ID     uuid.UUID         `json:"id"`
	Status redisstore.Status `json:"status"`
	Ended  timestamp         `json:"ended_at"`
}

func (s *Server) endSession(ctx *fasthttp.RequestCtx) error {
	caller, id, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	if err := decode(ctx, &nothing{}); err != nil {
		return err
	}
	ended, err := s.store.EndSession(requestContext(ctx), caller.Caller, id)
	if err != nil {
		return asConflict(err)
	}
	s.metrics.sessionsEnded.Inc()
	return answer(ctx, endedAnswer{id, redisstore.Completed, timestamp(ended)})
}

// append writes the session as the encoder would. The decoder has validated its metadata, which may contain white space.
func (a sessionAnswer) append(o object) (object, error) {
	o = o.id(`{"id":`, a.ID)
	o = o.id(`,"agent_id":`, a.Agent)
	o = o.plain(`,"status":`, string(a.Status))
	o = o.number(`,"max_actions":`, a.MaxActions)
	o = o.number(`,"action_count":`, a.ActionCount)
	o = o.amount(`,"max_value_usd":`, a.MaxValue)
	o = o.amount(`,"value_used_usd":`, a.ValueUsed)
	o = o.amount(`,"value_held_usd":`, a.ValueHeld)
	o = o.amount(`,"value_overage_usd":`, a.Overage)
	o = o.amount(`,"value_committed_usd":`, a.Committed)
	if a.MaxCommitted != nil {
		o = o.amount(`,"max_committed_usd":`, *a.MaxCommitted)
	}
	o = o.number(`,"max_lease_seconds":`, a.MaxLease)
	o = o.plains(`,"scopes":`, a.Scopes)
	o = append(o, `,"metadata":`...)
	var err error
	if o, err = jsontext.AppendFormat(o, a.Metadata); err != nil {
		return nil, err
	}
	o = o.time(`,"expires_at":`, a.Expires)
	o = o.time(`,"created_at":`, a.Created)
	if !a.Ended.IsZero() {
		o = o.time(`,"ended_at":`, a.Ended)
	}
	if !a.Suspended.IsZero() {
		o = o.time(`,"suspended_at":`, a.Suspended)
	}
	if a.SuspensionReason != "" {
		o, err = o.text(`,"suspension_reason":`, a.SuspensionReason)
	}
	o = o.plain(`,"enforcement":`, a.Enforcement)
	if a.Observed != nil {
		o = o.number(`,"observed_refusals":`, *a.Observed)
	}
	if a.MaxPerAction != nil {
		o = o.amount(`,"max_value_usd_per_action":`, *a.MaxPerAction)
	}
	if a.Thresholds != nil {
		o = o.percents(`,"thresholds":`, a.Thresholds)
	}
	if a.Parent != uuid.Nil {
		o = o.id(`,"parent_session_id":`, a.Parent)
	}
	if a.DelegatedActions != nil {
		o = o.number(`,"actions_delegated":`, *a.DelegatedActions)
		o = o.amount(`,"value_delegated_usd":`, *a.DelegatedValue)
	}
	return append(o, '}'), err
}
