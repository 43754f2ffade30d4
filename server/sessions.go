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
		r.post(prefix+"/sessions", s.createSession)
		r.get(prefix+"/sessions", s.listSessions)
		r.get(prefix+"/sessions/{id}", s.getSession)
		r.patch(prefix+"/sessions/{id}", s.changeLimits)
		r.post(prefix+"/sessions/{id}/end", s.endSession)
		r.get(prefix+"/sessions/{id}/tree", s.getSessionTree)
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
	n.Observes = v.enforcement(r.Enforcement)
	n.Thresholds = v.thresholds(r.Thresholds)
	n.Lifetime = time.Duration(lifetime) * time.Second
	return n, v.err()
}

// Whether a session refuses what exceeds its limits.
const (
	enforces = "enforce"
	observes = "observe" // it does it and counts it
)

// thresholds returns thresholds in ascending order, nil for the default.
func (v *validation) thresholds(given nullable[[]int]) redisstore.Thresholds {
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

// enforcement returns whether the session is to observe.
func (v *validation) enforcement(given optional[string]) bool {
	v.require(!given.given || given.value == enforces || given.value == observes, "enforcement", "must be enforce or observe")
	return given.value == observes
}

// sessionSummary is a session in a list.
type sessionSummary struct {
	ID          uuid.UUID         `json:"id"`
	Agent       uuid.UUID         `json:"agent_id"`
	Status      redisstore.Status `json:"status"`
	ActionCount int64             `json:"action_count"`
	MaxActions  int64             `json:"max_actions"`
	ValueUsed   money.MicroUSD    `json:"value_used_usd"`
	MaxValue    money.MicroUSD    `json:"max_value_usd"`
	Expires     timestamp         `json:"expires_at"`
}

func summaryOfSession(v redisstore.SessionSummary) sessionSummary {
	return sessionSummary{v.ID, v.Agent, v.Status, v.ActionCount, v.MaxActions, v.ValueUsed, v.MaxValue, timestamp(v.Expires)}
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

func (s *Server) listSessions(ctx *fasthttp.RequestCtx) error {
	caller, err := s.eitherCaller(ctx)
	if err != nil {
		return err
	}
	query, err := readQuery(ctx, []redisstore.Status{
		redisstore.Active, redisstore.Completed, redisstore.Expired, redisstore.Revoked,
	}, "agent_id")
	if err != nil {
		return err
	}
	if err := s.reserveAnswer(ctx, query.Limit*summaryBytes); err != nil {
		return err
	}
	page, err := s.listedSessions(ctx, caller, query)
	if err != nil {
		return err
	}
	announceNext(ctx, page.Next)
	return answerList(ctx, page.Items, func(o object, v redisstore.SessionSummary) (object, error) {
		return summaryOfSession(v).append(o), nil
	})
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
	if observes := v.enforcement(r.Enforcement); r.Enforcement.given {
		n.Observes = &observes
	}
	n.PerAction = redisstore.LimitChange{Given: r.PerAction.given, Value: (*int64)(r.PerAction.value)}
	if thresholds := v.thresholds(r.Thresholds); r.Thresholds.given {
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
