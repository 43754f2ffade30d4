package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"remit/money"
)

// MoreParams ask for more than a session's limits allow. At least one of AddActions and AddValue is more than 0.
type MoreParams struct {
	AddActions int64          `json:"add_actions,omitzero"`
	AddValue   money.MicroUSD `json:"add_value_usd,omitzero"`
	Reason     string         `json:"reason"` // for who decides, 1 to 500 characters

	IdempotencyKey string `json:"-"` // empty: a random one
}

// MoreRequest is an agent's request for more than its session's limits allow.
type MoreRequest struct {
	ID             string         `json:"id"`
	SessionID      string         `json:"session_id"`
	AgentID        string         `json:"agent_id"`
	Status         string         `json:"status"` // pending, approved, denied or ended: its session ended first
	AddActions     int64          `json:"add_actions"`
	AddValue       money.MicroUSD `json:"add_value_usd"`
	Reason         string         `json:"reason"`
	CreatedAt      time.Time      `json:"created_at"`
	GrantedActions int64          `json:"granted_actions,omitzero"` // by an approval
	GrantedValue   money.MicroUSD `json:"granted_value_usd,omitzero"`
	Comment        string         `json:"comment,omitzero"` // of who decided; empty: none
	DecidedAt      time.Time      `json:"decided_at,omitzero"`
}

// MoreFilter narrows a list of requests. The zero value selects all.
type MoreFilter struct {
	Status string // pending, approved, denied or ended
}

// ApprovalParams are what an approval grants. The zero value grants all that was asked for.
type ApprovalParams struct {
	AddActions *int64          `json:"add_actions,omitzero"`   // nil: as asked
	AddValue   *money.MicroUSD `json:"add_value_usd,omitzero"` // nil: as asked
	Comment    string          `json:"comment,omitzero"`
}

func requestsPath(session string) string    { return sessionPath(session) + "/requests" }
func requestPath(session, id string) string { return requestsPath(session) + "/" + url.PathEscape(id) }

// RequestMore asks for more than the session's limits allow. AwaitRequest waits for the decision. A session has at most 8 pending
// requests; beyond that the error is *LimitReached with the limit max_pending_requests.
func (s *Session) RequestMore(ctx context.Context, p MoreParams) (MoreRequest, error) {
	return decoded[MoreRequest](ctx, s.caller, s.caller.client.keyed(requestsPath(s.id), p.IdempotencyKey, p))
}

// Requests lists the session's requests for more, newest first: the pending ones and those decided last.
func (s *Session) Requests(ctx context.Context, f MoreFilter) ([]MoreRequest, error) {
	path := withQuery(requestsPath(s.id), "status", f.Status)
	return decoded[[]MoreRequest](ctx, s.caller, call{method: http.MethodGet, path: path})
}

// GetRequest reads a request for more.
func (s *Session) GetRequest(ctx context.Context, id string) (MoreRequest, error) {
	return decoded[MoreRequest](ctx, s.caller, call{method: http.MethodGet, path: requestPath(s.id, id)})
}

// Requests lists a session's requests for more, as Session.Requests does.
func (o *Organization) Requests(ctx context.Context, session string, f MoreFilter) ([]MoreRequest, error) {
	return o.session(session).Requests(ctx, f)
}

// GetRequest reads a request for more.
func (o *Organization) GetRequest(ctx context.Context, session, id string) (MoreRequest, error) {
	return o.session(session).GetRequest(ctx, id)
}

// ApproveRequest approves a request for more: it raises the session's limits by what it grants, at most what was asked for. The same
// approval again changes nothing. A request that was decided otherwise is [ErrRequestDecided].
func (o *Organization) ApproveRequest(ctx context.Context, session, id string, p ApprovalParams) (MoreRequest, error) {
	return o.decide(ctx, requestPath(session, id)+"/approve", p)
}

// DenyRequest denies a request for more, with a comment for the agent; empty: none. Denying it again changes nothing. A request that
// was approved is [ErrRequestDecided].
func (o *Organization) DenyRequest(ctx context.Context, session, id, comment string) (MoreRequest, error) {
	return o.decide(ctx, requestPath(session, id)+"/deny", ApprovalParams{Comment: comment})
}

func (o *Organization) decide(ctx context.Context, path string, p ApprovalParams) (MoreRequest, error) {
	return decoded[MoreRequest](ctx, o.caller, call{method: http.MethodPost, path: path, body: p, semantics: idempotent})
}
