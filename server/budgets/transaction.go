package budgets

import (
	"cmp"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) transactionRoutes(r *web.Routes) {
	r.Post("/v1/transactions", web.NoKey, h.Guard.ByAgent(h.beginTransaction))
	r.Get("/v1/transactions", redisstore.Viewer, h.Guard.ByEither(h.listTransactions))
	r.Get("/v1/transactions/{id}", redisstore.Viewer, h.Guard.ByEitherAt(h.getTransaction))
	r.Patch("/v1/transactions/{id}", web.NoKey, h.Guard.ByAgentAt(h.changeHold))
	r.Post("/v1/transactions/{id}/commit", web.NoKey, h.Guard.ByAgentAt(h.commitTransaction))
	r.Post("/v1/transactions/{id}/rollback", redisstore.Operator, h.Guard.ByEitherAt(h.rollbackTransaction))
}

const (
	maxState           = 64 << 10 // bytes, without white space
	maxReasonLength    = 1000     // characters
	defaultPendingTime = 300      // seconds

	releasedOnExpiry = "release"
	SpentOnExpiry    = "commit"

	ScopeRollback = "transactions:rollback"
	scopeAdmin    = "admin"
)

// BeginRequest is the body of a request that begins a transaction.
type BeginRequest struct {
	ActionType web.Optional[string]         `json:"action_type"`
	PreState   web.Optional[jsontext.Value] `json:"pre_state"`
	Session    web.Optional[string]         `json:"session_id"`
	Value      web.Optional[money.MicroUSD] `json:"value_usd"` // to hold
	ExpiresIn  web.Optional[int64]          `json:"expires_in_seconds"`
	Reversible web.Optional[bool]           `json:"reversible"`
	OnExpiry   web.Optional[string]         `json:"on_expiry"`
	Metadata   web.Optional[jsontext.Value] `json:"metadata"`
	DryRun     web.Optional[bool]           `json:"dry_run"`
}

// transaction reads the request; own is the session of one that names none, uuid.Nil for none.
func (r *BeginRequest) transaction(own uuid.UUID) (redisstore.NewTransaction, error) {
	var v web.Validation
	n := redisstore.NewTransaction{
		Session:      own,
		ActionType:   r.ActionType.Value,
		PreState:     cmp.Or(v.Object("pre_state", r.PreState, maxState), "{}"),
		Value:        r.Value.Value,
		Irreversible: !r.Reversible.Or(true),
		Metadata:     v.Object("metadata", r.Metadata, web.MaxMetadata),
		DryRun:       r.DryRun.Value,
	}
	v.Require(r.ActionType.Given, "action_type", "is required")
	checkActionType(&v, r.ActionType)
	if r.Session.Given {
		n.Session = v.ID("session_id", r.Session)
		v.Require(n.Session != uuid.Nil || len(v.Fields) > 0, "session_id", web.NotAnID)
	}
	onExpiry := r.OnExpiry.Or(releasedOnExpiry)
	n.SpentOnExpiry = onExpiry == SpentOnExpiry
	v.Require(onExpiry == releasedOnExpiry || n.SpentOnExpiry, "on_expiry", "must be release or commit")
	v.Require(!n.SpentOnExpiry || r.Session.Given || own != uuid.Nil, "on_expiry", "must be release without a session: nothing is held")
	lifetime := r.ExpiresIn.Or(defaultPendingTime)
	v.Within("expires_in_seconds", lifetime, 1, web.MaxLifetimeSeconds)
	n.Lifetime = time.Duration(lifetime) * time.Second
	return n, v.Err()
}

type commitRequest struct {
	Value     web.Optional[money.MicroUSD] `json:"value_usd"` // the actual cost
	PostState web.Optional[jsontext.Value] `json:"post_state"`
}

func (r *commitRequest) commit() (redisstore.Commit, error) {
	var v web.Validation
	return redisstore.Commit{Value: r.Value.Pointer(), PostState: v.Object("post_state", r.PostState, maxState)}, v.Err()
}

type rollbackRequest struct {
	Reason web.Optional[string] `json:"reason"`
}

func (r *rollbackRequest) rollback() (redisstore.Rollback, error) {
	var v web.Validation
	if r.Reason.Given {
		length := utf8.RuneCountInString(r.Reason.Value)
		v.Require(length >= 1 && length <= maxReasonLength, "reason", "must have 1 to 1000 characters")
	}
	return redisstore.Rollback{Reason: r.Reason.Value}, v.Err()
}

// TransactionAnswer is a transaction. Lists omit its states and metadata.
type TransactionAnswer struct {
	ID         uuid.UUID         `json:"id"`
	Agent      uuid.UUID         `json:"agent_id"`
	Session    uuid.UUID         `json:"session_id,omitzero"`
	Sequence   int64             `json:"sequence_number,omitzero"`
	Status     redisstore.Status `json:"status"`
	ActionType string            `json:"action_type"`
	Value      money.MicroUSD    `json:"value_usd"`      // the charge; before the commit, the hold
	ValueHeld  money.MicroUSD    `json:"value_held_usd"` // while it is pending
	Overage    money.MicroUSD    `json:"overage_usd"`
	Reversible bool              `json:"reversible"`
	OnExpiry   string            `json:"on_expiry,omitzero"`  // SpentOnExpiry, or "" for a hold that is released
	HeldBy     string            `json:"held_by,omitzero"`    // heldByGateway, or "" for what its agent settles
	SettledBy  string            `json:"settled_by,omitzero"` // "expiry": it is committed because its hold was spent
	Reason     string            `json:"reason,omitzero"`
	PreState   jsontext.Value    `json:"pre_state,omitzero"`
	PostState  jsontext.Value    `json:"post_state,omitzero"`
	Metadata   jsontext.Value    `json:"metadata,omitzero"`
	Expires    web.Timestamp     `json:"expires_at"`
	Created    web.Timestamp     `json:"created_at"`
	Committed  web.Timestamp     `json:"committed_at,omitzero"`
	Late       bool              `json:"late,omitzero"` // committed after it had expired
	RolledBack web.Timestamp     `json:"rolled_back_at,omitzero"`

	WouldRefuse string `json:"would_refuse,omitzero"` // the limit, of a begin or a PATCH in a session that observes
}

// DryTransaction is the answer to a dry run of a begin: a transaction without an id, because none was begun.
type DryTransaction struct {
	ID struct{} `json:"id,omitzero"` // hides that of the transaction
	TransactionAnswer
	DryRun bool `json:"dry_run"`
}

// summaryOf returns a transaction as lists show it, without its states and metadata.
func summaryOf(t redisstore.Transaction) TransactionAnswer {
	a := TransactionAnswer{
		ID: t.ID, Agent: t.Agent, Session: t.Session, Sequence: t.Sequence, Status: t.Status, ActionType: t.ActionType,
		Value: t.Hold, ValueHeld: t.Held, Overage: t.Overage, Reversible: t.Reversible, Reason: t.Reason,
		Expires: web.Timestamp(t.Expires), Created: web.Timestamp(t.Created),
		Committed: web.Timestamp(t.Committed), Late: t.Late, RolledBack: web.Timestamp(t.RolledBack),
		WouldRefuse: t.WouldRefuse,
	}
	if !t.Committed.IsZero() {
		a.Value = t.Value
	}
	if t.SpentOnExpiry {
		a.OnExpiry = SpentOnExpiry
	}
	if t.HeldByGateway {
		a.HeldBy = heldByGateway
	}
	if t.SettledByExpiry {
		a.SettledBy = web.SettledByExpiry
	}
	return a
}

func transactionOf(t redisstore.Transaction) TransactionAnswer {
	a := summaryOf(t)
	a.PreState, a.Metadata = jsontext.Value(t.PreState), web.MetadataOf(t.Metadata)
	if t.PostState != "" {
		a.PostState = jsontext.Value(t.PostState)
	}
	return a
}

func (h *Handlers) beginTransaction(ctx *fasthttp.RequestCtx, access *access.CachedToken) error {
	wanted, err := web.Decoded(ctx, func(r *BeginRequest) (redisstore.NewTransaction, error) {
		return r.transaction(access.Caller.OwnSession())
	})
	if err != nil {
		return err
	}
	operation, gateway := "begin", heldBeginOf(ctx)
	if gateway != nil { // a key of an agent's own begin does not give the gateway what that agent settles
		operation, wanted.HeldByGateway = "begin held", true
	}
	if wanted.Idempotency, err = web.IdempotencyUnlessDry(ctx, operation, uuid.Nil, wanted.DryRun); err != nil {
		return err
	}
	if err := h.Guard.OutOfReach(ctx, access.Caller, access.Caller.MayActIn(wanted.Session)); err != nil {
		return err
	}
	begun, err := h.Store.Begin(web.RequestContext(ctx), *access.Caller.Token, wanted)
	gateway.became(begun, err)
	if err != nil && !wanted.DryRun {
		h.counted.refusedByAgent(err)
	}
	if err != nil {
		return redisstore.Needing(err, 1, wanted.Value)
	}
	if wanted.DryRun {
		return web.Answer(ctx, DryTransaction{TransactionAnswer: transactionOf(begun), DryRun: true})
	}
	h.counted.transaction(h.counted.begun, begun, wanted.Idempotency)
	h.counted.observed(begun.WouldRefuse, false, wanted.Idempotency)
	return web.AnswerCreated(ctx, "/v1/transactions/"+begun.ID.String(), transactionOf(begun))
}

func (h *Handlers) commitTransaction(ctx *fasthttp.RequestCtx, agent redisstore.AccessToken, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, (*commitRequest).commit)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "commit", id); err != nil {
		return err
	}
	committed, err := h.Store.Commit(web.RequestContext(ctx), agent, id, wanted)
	if err != nil {
		return err
	}
	h.counted.transaction(h.counted.committed, committed, wanted.Idempotency)
	return web.Answer(ctx, transactionOf(committed))
}

// rollbackTransaction releases a hold or reverses a commit. An agent may always release its own hold, but needs a scope to
// reverse a commit, which another part of it may have made.
func (h *Handlers) rollbackTransaction(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, (*rollbackRequest).rollback)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "rollback", id); err != nil {
		return err
	}
	for _, scope := range []string{ScopeRollback, scopeAdmin} {
		if caller.Token != nil && caller.MayUse(scope) == nil {
			wanted.Scopes = append(wanted.Scopes, scope)
		}
	}
	undone, err := h.Store.Rollback(web.RequestContext(ctx), caller.Caller, id, wanted)
	if err != nil {
		return undoRefused(err)
	}
	h.counted.transaction(h.counted.rolledBack, undone, wanted.Idempotency)
	return web.Answer(ctx, transactionOf(undone))
}

// undoRefused names the scope that would permit reversing the commit.
func undoRefused(err error) error {
	var bySession *redisstore.ScopeError
	switch {
	case errors.Is(err, redisstore.ErrTokenLacksScope):
		return &web.ScopeError{Scope: ScopeRollback}
	case errors.As(err, &bySession):
		return &redisstore.ScopeError{Scope: ScopeRollback}
	}
	return err
}

func (h *Handlers) getTransaction(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	t, err := h.Store.Transaction(web.RequestContext(ctx), caller.Caller, id)
	return web.AnswerOf(ctx, transactionOf, t, err)
}

// appendSummary writes the transaction without its states and metadata, as the encoder would.
func (a TransactionAnswer) appendSummary(o web.Object) (web.Object, error) {
	o = o.ID(`{"id":`, a.ID)
	o = o.ID(`,"agent_id":`, a.Agent)
	if a.Session != uuid.Nil {
		o = o.ID(`,"session_id":`, a.Session)
	}
	if a.Sequence != 0 {
		o = o.Number(`,"sequence_number":`, a.Sequence)
	}
	o = o.Plain(`,"status":`, string(a.Status))
	o, err := o.Text(`,"action_type":`, a.ActionType)
	o = o.Amount(`,"value_usd":`, a.Value)
	o = o.Amount(`,"value_held_usd":`, a.ValueHeld)
	o = o.Amount(`,"overage_usd":`, a.Overage)
	o = strconv.AppendBool(append(o, `,"reversible":`...), a.Reversible)
	if a.OnExpiry != "" {
		o = o.Plain(`,"on_expiry":`, a.OnExpiry)
	}
	if a.HeldBy != "" {
		o = o.Plain(`,"held_by":`, a.HeldBy)
	}
	if a.SettledBy != "" {
		o = o.Plain(`,"settled_by":`, a.SettledBy)
	}
	if a.Reason != "" {
		var failed error
		o, failed = o.Text(`,"reason":`, a.Reason)
		err = cmp.Or(err, failed)
	}
	return a.appendTimes(o), err
}

// appendTimes writes the rest of a summary.
func (a TransactionAnswer) appendTimes(o web.Object) web.Object {
	o = o.Time(`,"expires_at":`, a.Expires)
	o = o.Time(`,"created_at":`, a.Created)
	if !a.Committed.IsZero() {
		o = o.Time(`,"committed_at":`, a.Committed)
	}
	if a.Late {
		o = append(o, `,"late":true`...)
	}
	if !a.RolledBack.IsZero() {
		o = o.Time(`,"rolled_back_at":`, a.RolledBack)
	}
	return append(o, '}')
}
