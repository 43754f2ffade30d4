package redisstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// States of a request for more, which may also be Pending.
const (
	Approved Status = "approved"
	Denied   Status = "denied"
	Lapsed   Status = "ended" // its session ended, expired or was revoked before it was decided
)

// SessionRequest is an agent's request for more than its session's limits allow.
type SessionRequest struct {
	ID             uuid.UUID
	Session        uuid.UUID
	Agent          uuid.UUID
	Status         Status // at the time of the read
	AddActions     int64  // asked for
	AddValue       money.MicroUSD
	Reason         string
	GrantedActions int64 // 0 unless it is approved
	GrantedValue   money.MicroUSD
	Comment        string // of who decided it, "" for none
	Created        time.Time
	Decided        time.Time // zero unless it is approved or denied

	Repeated bool // it had been decided in the same way before; nothing was changed
	// What a caller needs to wait for the decision, after a read of a pending request.
	NewestEvent string        // id of the agent's newest event; a decision comes with a later one
	Remaining   time.Duration // until its session expires
}

// NewSessionRequest describes a request for more. One of AddActions and AddValue is more than 0.
type NewSessionRequest struct {
	AddActions  int64
	AddValue    money.MicroUSD
	Reason      string
	Idempotency *Idempotency // nil for no idempotency key
}

// Approval is what is granted of a request for more.
type Approval struct {
	AddActions *int64          // nil for all that was asked for
	AddValue   *money.MicroUSD // nil for all that was asked for
	Comment    string          // "" for none
}

// of returns the amounts that are granted of a request. Errors: *AboveAskedError.
func (a Approval) of(r SessionRequest) (actions int64, value money.MicroUSD, err error) {
	actions, value = r.AddActions, r.AddValue
	if a.AddActions != nil {
		actions = *a.AddActions
	}
	if a.AddValue != nil {
		value = *a.AddValue
	}
	switch {
	case actions > r.AddActions:
		return 0, 0, &AboveAskedError{Limit: "max_actions"}
	case value > r.AddValue:
		return 0, 0, &AboveAskedError{Limit: "max_value_usd"}
	case actions == 0 && value == 0:
		return 0, 0, ErrGrantsNothing
	}
	return actions, value, nil
}

var (
	requestMore    = kernel.NewKeyedScript("budgets/request_more")
	getRequest     = kernel.NewScript("budgets/get_request", reads)
	listRequests   = kernel.NewScript("budgets/list_requests", reads)
	approveRequest = kernel.NewScript("budgets/approve_request", writes)
	denyRequest    = kernel.NewScript("budgets/deny_request", writes)
)

// RequestMore asks for more than the session's limits allow. A session has at most 8 pending requests. Errors: ErrInvalidToken,
// ErrUnknownSession, *NotActiveError, *LimitError, *QuotaError, *RateError; with an idempotency key ErrIdempotencyKeyReused.
func (s *Store) RequestMore(ctx context.Context, t AccessToken, session uuid.UUID, n NewSessionRequest) (SessionRequest, error) {
	act := t.Actor()
	held, err := s.core.ReserveFor(ctx, act, s.requestDemand(act, n), n.Idempotency)
	if err != nil {
		return SessionRequest{}, err
	}
	id, keys := NewID(t.Agent), s.requestKeys(act, session)
	r, err := s.repeatWhileDue(ctx, act, session, func() (*reply, error) {
		return s.core.Perform(ctx, requestMore, act, n.Idempotency, keys, act.Organization, act.Agent, act.Family, id,
			n.AddActions, int64(n.AddValue), n.Reason, s.core.Audit(ctx, act), s.config.Retention.Milliseconds())
	})
	if err == nil {
		held.Resize(r.Number(2), time.Duration(r.Number(3))*time.Millisecond)
	}
	held.Finish(err, n.Idempotency.IsReplay())
	if err != nil {
		return SessionRequest{}, act.ErrorFor(err)
	}
	return SessionRequest{
		ID: r.ID(0), Session: session, Agent: t.Agent, Status: Pending, AddActions: n.AddActions, AddValue: n.AddValue,
		Reason: n.Reason, Created: r.Time(1),
	}, r.Err
}

// SessionRequest returns a request for more of the session. Errors: ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession,
// ErrUnknownRequest.
func (s *Store) SessionRequest(ctx context.Context, c Caller, session, id uuid.UUID) (SessionRequest, error) {
	act, err := s.core.ActOnSession(ctx, c, session, nil)
	if err != nil {
		return SessionRequest{}, err
	}
	return s.readRequest(ctx, act, session, id)
}

func (s *Store) readRequest(ctx context.Context, act kernel.Actor, session, id uuid.UUID) (SessionRequest, error) {
	r, err := s.client.Run(ctx, act.Flow, getRequest, s.requestKeys(act, session), act.Organization, act.Agent, act.Family, id)
	if err != nil {
		return SessionRequest{}, act.ErrorFor(err)
	}
	of, err := requestedFrom(r, session, act.Agent)
	if err != nil {
		return SessionRequest{}, err
	}
	v, err := of.read(id, r.Text(5))
	v.NewestEvent = r.Text(4)
	return v, cmp.Or(r.Err, err)
}

// SessionRequests returns the requests for more of the session, newest first: the pending ones and the 32 decided last. Errors:
// ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession.
func (s *Store) SessionRequests(ctx context.Context, c Caller, session uuid.UUID) ([]SessionRequest, error) {
	act, err := s.core.ActOnSession(ctx, c, session, nil)
	if err != nil {
		return nil, err
	}
	keys := s.requestKeys(act, session)[:3] // without the events
	r, err := s.client.Run(ctx, act.Flow, listRequests, keys, act.Organization, act.Agent, act.Family)
	if err != nil {
		return nil, act.ErrorFor(err)
	}
	of, err := requestedFrom(r, session, act.Agent)
	if err != nil {
		return nil, err
	}
	return of.readAll(r.List(4))
}

// ApproveRequest approves a request for more: it adds what is granted to the session's limits. The same decision again changes
// nothing and returns the first. Errors: ErrInvalidAPIKey, ErrUnknownSession, ErrUnknownRequest, *AboveAskedError,
// ErrGrantsNothing, ErrRequestDecided, *NotActiveError, *AboveBoundsError, *ParentError, *BudgetError.
func (s *Store) ApproveRequest(ctx context.Context, key APIKey, session, id uuid.UUID, a Approval) (SessionRequest, error) {
	// The limits are read before the request: while it is pending then, they are without what is granted.
	act, at, err := s.sessionToChange(ctx, Caller{Key: &key}, session, NewLimits{AddValue: new(money.MicroUSD)})
	if err != nil {
		return SessionRequest{}, err
	}
	asked, err := s.readRequest(ctx, act, session, id) // what was asked for never changes
	if err != nil {
		return SessionRequest{}, err
	}
	actions, value, err := a.of(asked)
	if err != nil {
		return SessionRequest{}, err
	}
	approve := func(granted string) (*reply, error) {
		return s.repeatForRoom(ctx, act, session, nil, func() (*reply, error) {
			return s.client.Run(ctx, act.Flow, approveRequest, s.requestKeys(act, session), act.Organization, act.Agent, id,
				actions, int64(value), a.Comment, s.core.Audit(ctx, act), MostActions, int64(MostValue), granted)
		})
	}
	r, err := s.approveWithin(ctx, act, at, asked, NewLimits{AddActions: &actions, AddValue: &value}, approve)
	return s.decided(act, session, id, r, err)
}

// approveWithin approves a request within what the session above grants. One that is decided gets no grant again: the script returns
// the first decision, or refuses.
func (s *Store) approveWithin(ctx context.Context, act kernel.Actor, at limitsNow, asked SessionRequest, n NewLimits, approve func(granted string) (*reply, error)) (*reply, error) {
	if asked.Status != Pending {
		return approve("")
	}
	r, err := s.topUp(ctx, act, at, n, approve)
	var beyond *ParentError
	if !errors.As(err, &beyond) && !kernel.IsBudgetExhausted(err) {
		return r, err
	}
	// Another may have approved it meanwhile, and taken the room.
	if now, failed := s.readRequest(ctx, act, at.id, asked.ID); failed == nil && (now.Status == Approved || now.Status == Denied) {
		return approve("")
	}
	return r, err
}

// DenyRequest denies a request for more. The same decision again changes nothing and returns the first. Errors:
// ErrInvalidAPIKey, ErrUnknownSession, ErrUnknownRequest, ErrRequestDecided, *NotActiveError.
func (s *Store) DenyRequest(ctx context.Context, key APIKey, session, id uuid.UUID, comment string) (SessionRequest, error) {
	act, err := s.core.ActOnSession(ctx, Caller{Key: &key}, session, nil)
	if err != nil {
		return SessionRequest{}, err
	}
	r, err := s.client.Run(ctx, act.Flow, denyRequest, s.requestKeys(act, session), act.Organization, act.Agent, id, comment,
		s.core.Audit(ctx, act))
	return s.decided(act, session, id, r, err)
}

// decided returns a request for more as approve_request.lua and deny_request.lua return it, and counts the memory.
func (s *Store) decided(act kernel.Actor, session, id uuid.UUID, r *reply, err error) (SessionRequest, error) {
	if err != nil {
		return SessionRequest{}, act.ErrorFor(err)
	}
	v, err := readRecord(id, r.Text(4))
	v.Session, v.Agent, v.Repeated = session, act.Agent, r.Text(1) != ""
	if !v.Repeated {
		s.core.Usage.NoteEvent(act.Organization)
		s.core.Usage.NoteBytes(act.Organization, r.Number(2), time.Duration(r.Number(3))*time.Millisecond) // of the comment
	}
	return v, cmp.Or(r.Err, err)
}

// requestKeys are the keys of a script about a session's requests for more.
func (s *Store) requestKeys(act kernel.Actor, session uuid.UUID) []string {
	return []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, session), s.keys.SessionRequests(act.Agent, session),
		s.keys.Events(act.Agent)}
}
