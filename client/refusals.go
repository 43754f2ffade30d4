package client

import (
	"fmt"
	"strings"
	"time"

	"remit/money"
)

// LimitReached refuses a charge or a transaction that exceeds a limit of its session. Nothing was charged.
type LimitReached struct {
	*Problem
	// Limit is max_actions, max_value_usd, max_committed_usd or max_value_usd_per_action; of a lease also max_lease_seconds,
	// max_open_leases or expires_at; of a request for more max_pending_requests; of a child also max_lease_seconds,
	// expires_at, max_depth or max_open_children.
	Limit           string
	ParentSessionID string // whose limit it is, when a child is refused; empty: the session's own
	NeededActions   int64  // that the call wanted
	// NeededValue is what the call wanted to spend, hold, lease or set aside; to raise a hold, the new hold in full.
	NeededValue money.MicroUSD
	Usage
}

// RequestNotApproved is the *LimitReached of a charge that asked for more in vain: the Request was denied, or when the ctx ended it
// was still pending. Nothing was charged. What is approved later still raises the session's limits.
type RequestNotApproved struct {
	*LimitReached
	Request MoreRequest // without an ID if it could not be made
	cause   error       // nil: the request was denied
}

// AgentLimitReached refuses a charge, a hold, a lease or a session that exceeds a limit of the agent. Nothing was done.
type AgentLimitReached struct {
	*Problem
	Limit    string    // max_value_usd_per_day or max_open_sessions
	ResetsAt time.Time // of a limit per day

	NeededActions int64 // as those of LimitReached
	NeededValue   money.MicroUSD
}

// BudgetExhausted refuses a root session, or its top-up, that exceeds what remains of the organization's budget. Nothing was done.
type BudgetExhausted struct {
	*Problem
	Remaining money.MicroUSD
	ResetsAt  time.Time // zero: the budget has no period

	NeededActions int64 // as those of LimitReached
	NeededValue   money.MicroUSD
}

// AgentSuspended refuses an operation of an agent that is suspended.
type AgentSuspended struct {
	*Problem
	SuspendedAt time.Time
}

// SessionSuspended refuses an operation on a session that is suspended.
type SessionSuspended struct {
	*Problem
	SuspendedAt time.Time
}

// QuotaExceeded refuses a request that exceeds a quota of the organization. Nothing was done.
type QuotaExceeded struct {
	*Problem
	Quota string // which one, such as agents
	Used  int64
	Max   int64
}

// LimitBelowUsage refuses a limit below what is used and held.
type LimitBelowUsage struct {
	*Problem
	Limit string // max_actions or max_value_usd
	Usage
}

// SessionNotActive refuses an operation that needs an active session.
type SessionNotActive struct {
	*Problem
	SessionStatus string // completed, expired or revoked
}

// InsufficientScope refuses an operation for which the access token or the session lacks a scope.
type InsufficientScope struct {
	*Problem
	RequiredScope string
}

// InsufficientRole refuses a call that the API key's role does not allow. Nothing was done.
type InsufficientRole struct {
	*Problem
	RequiredRole string // operator or admin
}

// TransactionNotPending refuses to commit or roll back a transaction that is not pending.
type TransactionNotPending struct {
	*Problem
	TransactionStatus string // committed, rolled_back or expired
}

// TransactionNotReversible refuses to roll back a committed transaction that was begun as irreversible.
type TransactionNotReversible struct {
	*Problem
	TransactionStatus string
}

// InvalidTarget refuses tokens for a resource that is malformed, or that is not among the agent's audiences.
type InvalidTarget struct{ *Problem }

// InvalidProof refuses a DPoP proof (RFC 9449).
type InvalidProof struct {
	*Problem
	ClockSkew time.Duration // this machine's clock minus the service's, to the second; 0: equal, or unknown
	missing   bool          // whether no proof was sent
}

// Is matches ErrDPoPRequired when no proof was sent.
func (e *InvalidProof) Is(target error) bool { return e.missing && target == ErrDPoPRequired }

func (e *InvalidTarget) Unwrap() error            { return e.Problem }
func (e *InvalidProof) Unwrap() error             { return e.Problem }
func (e *LimitReached) Unwrap() error             { return e.Problem }
func (e *QuotaExceeded) Unwrap() error            { return e.Problem }
func (e *LimitBelowUsage) Unwrap() error          { return e.Problem }
func (e *SessionNotActive) Unwrap() error         { return e.Problem }
func (e *InsufficientScope) Unwrap() error        { return e.Problem }
func (e *InsufficientRole) Unwrap() error         { return e.Problem }
func (e *TransactionNotPending) Unwrap() error    { return e.Problem }
func (e *TransactionNotReversible) Unwrap() error { return e.Problem }
func (e *AgentLimitReached) Unwrap() error        { return e.Problem }
func (e *BudgetExhausted) Unwrap() error          { return e.Problem }
func (e *AgentSuspended) Unwrap() error           { return e.Problem }
func (e *SessionSuspended) Unwrap() error         { return e.Problem }

// Unwrap returns the refusal of the charge, and why there is no decision.
func (e *RequestNotApproved) Unwrap() []error {
	if e.cause == nil {
		return []error{e.LimitReached}
	}
	return []error{e.LimitReached, e.cause}
}

// Error adds the decision to the refusal of the charge.
func (e *RequestNotApproved) Error() string {
	text := e.LimitReached.Error() + "; request for more " + e.Request.Status
	switch {
	case e.Request.ID == "":
		text = e.LimitReached.Error() + "; no request for more was made"
	case e.Request.Comment != "":
		text += ": " + e.Request.Comment
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// needs ends a text with what the call wanted of the limit. It returns "" for a limit of neither actions nor value.
func needs(limit string, actions int64, value money.MicroUSD) string {
	switch {
	case strings.HasPrefix(limit, "max_actions") && actions == 1:
		return "; this call needs 1 action"
	case strings.HasPrefix(limit, "max_actions") && actions > 0:
		return fmt.Sprintf("; this call needs %d actions", actions)
	case (strings.HasPrefix(limit, "max_value_usd") || limit == "max_committed_usd") && value > 0:
		return "; this call needs " + value.String() + " USD"
	}
	return ""
}

// Error adds the limit, what remains of it and what the call needs.
func (e *LimitReached) Error() string {
	limit := e.Limit
	if e.ParentSessionID != "" {
		limit += " of the parent " + e.ParentSessionID
	}
	return e.text(fmt.Sprintf("%s: %d of %d actions and %s of %s USD left",
		limit, e.RemainingActions, e.MaxActions, e.RemainingValue, e.MaxValue) + needs(e.Limit, e.NeededActions, e.NeededValue))
}

// Error adds the limit and what is used of it.
func (e *LimitBelowUsage) Error() string {
	return e.text(fmt.Sprintf("%s: %d actions and %s USD used, %s USD held", e.Limit, e.ActionCount, e.ValueUsed, e.ValueHeld))
}

// Error adds the limit, when it is available again and what the call needs.
func (e *AgentLimitReached) Error() string {
	until := ""
	if !e.ResetsAt.IsZero() {
		until = ", until " + e.ResetsAt.UTC().Format(time.RFC3339)
	}
	return e.text(e.Limit + until + needs(e.Limit, e.NeededActions, e.NeededValue))
}

// Error adds what to do.
func (e *InvalidTarget) Error() string {
	return e.text("name the resource in the agent's audiences, or in AgentOptions.Resource when the token was first obtained")
}

// Error adds how far the clocks differ, if that is why.
func (e *InvalidProof) Error() string {
	switch {
	case e.missing:
		return e.text(adviseDPoP)
	case e.ClockSkew > proofTolerance:
		return e.text("this machine's clock is " + e.ClockSkew.String() + " ahead of the service's")
	case e.ClockSkew < -proofTolerance:
		return e.text("this machine's clock is " + (-e.ClockSkew).String() + " behind the service's")
	}
	return e.Problem.Error()
}

// Error adds what remains of the budget and what the call needs.
func (e *BudgetExhausted) Error() string {
	return e.text(e.Remaining.String() + " USD left" + needs("max_value_usd", e.NeededActions, e.NeededValue))
}

// Error adds the quota and what is used of it.
func (e *QuotaExceeded) Error() string {
	return e.text(fmt.Sprintf("%s: %d of %d used", e.Quota, e.Used, e.Max))
}
