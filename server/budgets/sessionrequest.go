package budgets

import (
	"cmp"
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) sessionRequestRoutes(r *web.Routes) {
	for _, prefix := range []string{"", "/v1"} {
		r.Post(prefix+"/sessions/{id}/requests", web.NoKey, h.Guard.ByAgentAt(h.requestMore))
		r.Get(prefix+"/sessions/{id}/requests", redisstore.Viewer, h.Guard.ByEitherAt(h.listRequests))
		r.Get(prefix+"/sessions/{id}/requests/{request_id}", redisstore.Viewer, h.Guard.ByEitherAt(h.getRequest))
		r.Post(prefix+"/sessions/{id}/requests/{request_id}/approve", redisstore.Operator, access.ByKeyAt(h.approveRequest))
		r.Post(prefix+"/sessions/{id}/requests/{request_id}/deny", redisstore.Operator, access.ByKeyAt(h.denyRequest))
	}
}

const (
	maxRequestText = 500 // characters, of a reason and of a comment
	// mostRequestBytes is about how much the list of a session's requests may have: 40 with a reason and a comment.
	mostRequestBytes = 40 * 4500
)

type moreRequest struct {
	AddActions web.Optional[int64]          `json:"add_actions"`
	AddValue   web.Optional[money.MicroUSD] `json:"add_value_usd"`
	Reason     web.Optional[string]         `json:"reason"`
}

func (r *moreRequest) request() (redisstore.NewSessionRequest, error) {
	var v web.Validation
	if r.AddActions.Given {
		v.Within("add_actions", r.AddActions.Value, 1, maxActionsLimit)
	}
	v.Require(!r.AddValue.Given || r.AddValue.Value > 0, "add_value_usd", "must be more than 0")
	v.Require(r.AddActions.Given || r.AddValue.Given || !r.Reason.Given, "", "name at least one of add_actions and add_value_usd")
	v.Require(r.Reason.Given, "reason", "is required")
	checkRequestText(&v, "reason", r.Reason)
	return redisstore.NewSessionRequest{AddActions: r.AddActions.Value, AddValue: r.AddValue.Value, Reason: r.Reason.Value}, v.Err()
}

func checkRequestText(v *web.Validation, field string, given web.Optional[string]) {
	length := utf8.RuneCountInString(given.Value)
	v.Require(!given.Given || length >= 1 && length <= maxRequestText, field, "must have 1 to 500 characters")
}

type approveRequest struct {
	AddActions web.Optional[int64]          `json:"add_actions"` // granted
	AddValue   web.Optional[money.MicroUSD] `json:"add_value_usd"`
	Comment    web.Optional[string]         `json:"comment"`
}

func (r *approveRequest) approval() (redisstore.Approval, error) {
	var v web.Validation
	v.Within("add_actions", r.AddActions.Value, 0, maxActionsLimit)
	checkRequestText(&v, "comment", r.Comment)
	return redisstore.Approval{AddActions: r.AddActions.Pointer(), AddValue: r.AddValue.Pointer(), Comment: r.Comment.Value}, v.Err()
}

type denyRequest struct {
	Comment web.Optional[string] `json:"comment"`
}

func (r *denyRequest) comment() (string, error) {
	var v web.Validation
	checkRequestText(&v, "comment", r.Comment)
	return r.Comment.Value, v.Err()
}

// SessionRequestAnswer is a request for more than a session's limits.
type SessionRequestAnswer struct {
	ID         uuid.UUID         `json:"id"`
	Session    uuid.UUID         `json:"session_id"`
	Agent      uuid.UUID         `json:"agent_id"`
	Status     redisstore.Status `json:"status"`
	AddActions int64             `json:"add_actions"`
	AddValue   money.MicroUSD    `json:"add_value_usd"`
	Reason     string            `json:"reason"`
	*Granted
	Comment string        `json:"comment,omitzero"`
	Created web.Timestamp `json:"created_at"`
	Decided web.Timestamp `json:"decided_at,omitzero"`
}

// Granted is what was granted of an approved request.
type Granted struct {
	Actions int64          `json:"granted_actions"`
	Value   money.MicroUSD `json:"granted_value_usd"`
}

func sessionRequestOf(v redisstore.SessionRequest) SessionRequestAnswer {
	a := SessionRequestAnswer{
		ID: v.ID, Session: v.Session, Agent: v.Agent, Status: v.Status, AddActions: v.AddActions, AddValue: v.AddValue,
		Reason: v.Reason, Comment: v.Comment, Created: web.Timestamp(v.Created), Decided: web.Timestamp(v.Decided),
	}
	if v.Status == redisstore.Approved {
		a.Granted = &Granted{v.GrantedActions, v.GrantedValue}
	}
	return a
}

// requestMore asks for more than the session's limits allow.
func (h *Handlers) requestMore(ctx *fasthttp.RequestCtx, agent redisstore.AccessToken, id uuid.UUID) error {
	wanted, err := web.Decoded(ctx, (*moreRequest).request)
	if err != nil {
		return err
	}
	if wanted.Idempotency, err = web.IdempotencyOf(ctx, "request more", id); err != nil {
		return err
	}
	asked, err := h.Store.RequestMore(web.RequestContext(ctx), agent, id, wanted)
	if err != nil {
		return redisstore.Needing(err, wanted.AddActions, wanted.AddValue)
	}
	if !wanted.Idempotency.IsReplay() {
		h.counted.requests.made.Inc()
	}
	return web.AnswerCreated(ctx, "/v1/sessions/"+id.String()+"/requests/"+asked.ID.String(), sessionRequestOf(asked))
}

// listRequests lists all requests that are kept of a session.
func (h *Handlers) listRequests(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	query, err := readRequestQuery(ctx, "status")
	if err != nil {
		return err
	}
	if err := h.Front.ReserveAnswer(ctx, mostRequestBytes); err != nil {
		return err
	}
	all, err := h.Store.SessionRequests(web.RequestContext(ctx), caller.Caller, id)
	if err != nil {
		return err
	}
	answers := []SessionRequestAnswer{}
	for _, one := range all {
		if one.Status == cmp.Or(query.status, one.Status) {
			answers = append(answers, sessionRequestOf(one))
		}
	}
	return web.Answer(ctx, answers)
}

// getRequest returns a request. With wait it answers when the request is no longer pending, or the time is over.
func (h *Handlers) getRequest(ctx *fasthttp.RequestCtx, caller access.Caller, session uuid.UUID) error {
	id, err := web.PathIDNamed(ctx, "request_id")
	if err != nil {
		return err
	}
	query, err := readRequestQuery(ctx, "wait")
	if err != nil {
		return err
	}
	found, err := h.Store.SessionRequest(web.RequestContext(ctx), caller.Caller, session, id)
	if err == nil && found.Status == redisstore.Pending && query.wait > 0 && !ctx.IsHead() {
		found, err = h.awaitDecision(ctx, caller, found, query.wait)
	}
	return web.AnswerOf(ctx, sessionRequestOf, found, err)
}

func (h *Handlers) approveRequest(ctx *fasthttp.RequestCtx, key redisstore.APIKey, session uuid.UUID) error {
	id, err := web.PathIDNamed(ctx, "request_id")
	if err != nil {
		return err
	}
	approval, err := web.Decoded(ctx, (*approveRequest).approval)
	if err != nil {
		return err
	}
	approved, err := h.Store.ApproveRequest(web.RequestContext(ctx), key, session, id, approval)
	if err != nil {
		return approvalRefused(err)
	}
	if !approved.Repeated {
		h.counted.requests.approved.Inc()
	}
	return web.Answer(ctx, sessionRequestOf(approved))
}

func (h *Handlers) denyRequest(ctx *fasthttp.RequestCtx, key redisstore.APIKey, session uuid.UUID) error {
	id, err := web.PathIDNamed(ctx, "request_id")
	if err != nil {
		return err
	}
	comment, err := web.Decoded(ctx, (*denyRequest).comment)
	if err != nil {
		return err
	}
	denied, err := h.Store.DenyRequest(web.RequestContext(ctx), key, session, id, comment)
	if err != nil {
		return AsConflict(err)
	}
	if !denied.Repeated {
		h.counted.requests.denied.Inc()
	}
	return web.Answer(ctx, sessionRequestOf(denied))
}

// approvalRefused names the field that refuses an approval.
func approvalRefused(err error) error {
	var beyond *redisstore.AboveAskedError
	var above *redisstore.AboveBoundsError
	switch {
	case errors.As(err, &beyond) && beyond.Limit == "max_actions":
		return web.Invalid("add_actions", "must not be more than was asked for")
	case errors.As(err, &beyond):
		return web.Invalid("add_value_usd", "must not be more than was asked for")
	case errors.Is(err, redisstore.ErrGrantsNothing):
		return web.Invalid("", "grant some of what was asked for, or deny the request")
	case errors.As(err, &above):
		return aboveBounds(above.Limit)
	}
	return AsConflict(err)
}

const (
	maxDecisionWait = 60 // seconds
	// rereadPause is the shortest time between two reads of a request that an expiry may have ended.
	rereadPause = 100 * time.Millisecond
)

// requestQuery selects requests for more.
type requestQuery struct {
	status redisstore.Status // "" for all
	wait   time.Duration     // how long to wait for the decision
}

// readRequestQuery reads the one parameter that the endpoint has.
func readRequestQuery(ctx *fasthttp.RequestCtx, parameter string) (requestQuery, error) {
	var v web.Validation
	var q requestQuery
	for field, text := range v.Parameters(ctx, "request", parameter) {
		switch field {
		case "status":
			q.status = v.Status(text, []redisstore.Status{redisstore.Pending, redisstore.Approved, redisstore.Denied, redisstore.Lapsed})
		case "wait":
			q.wait = v.Wait(field, text, maxDecisionWait)
		}
	}
	return q, v.Err()
}

// awaitDecision waits until a pending request is decided or its session ends; or until the time is over, the slot is displaced
// or the server stops: then it returns the request pending.
func (h *Handlers) awaitDecision(ctx *fasthttp.RequestCtx, caller access.Caller, asked redisstore.SessionRequest, wait time.Duration) (redisstore.SessionRequest, error) {
	slot, err := h.Front.Waiters.Acquire(caller.OrganizationID(), h.Front.WaiterAddress(ctx))
	if err != nil {
		return asked, err
	}
	defer slot.Release()
	bounded, cancel := context.WithTimeout(slot.Context(), caller.Patience(wait))
	defer cancel()
	for asked.Status == redisstore.Pending && bounded.Err() == nil {
		if err := h.awaitChange(bounded, asked); err != nil {
			return asked, err
		}
		if caller.HasExpired() {
			return asked, access.ErrInvalidToken
		}
		if caller.Delegated != nil {
			if _, err := h.Guard.CheckDelegated(web.ReadContext(ctx), caller); err != nil {
				return asked, err
			}
		}
		if asked, err = h.Store.SessionRequest(web.RequestContext(ctx), caller.Caller, asked.Session, asked.ID); err != nil {
			return asked, err
		}
	}
	return asked, nil
}

// awaitChange waits until anything happened to the request's agent, its session expires, or ctx ends. A decision, an end and a
// revocation are events of the agent; an expiry is not.
func (h *Handlers) awaitChange(ctx context.Context, asked redisstore.SessionRequest) error {
	return web.Await(ctx, max(asked.Remaining, rereadPause), func(ctx context.Context) error {
		return h.Store.AwaitEvent(ctx, asked.Agent, asked.NewestEvent)
	})
}
