package redisstore

import (
	"errors"
	"fmt"
	"remit/redisclient"
	"time"
)

// What the store refuses. None of these has changed anything, but for ErrTokenReused, which has revoked its family.
var (
	ErrInvalidAPIKey       = errors.New("no organization has this API key")
	ErrSuccessorUsed       = errors.New("the API key was replaced and its successor is in use")
	ErrInvalidToken        = errors.New("the access token's agent or family is not live")
	ErrInvalidCredentials  = errors.New("unknown agent, wrong secret or revoked agent")
	ErrInvalidRefreshToken = errors.New("the refresh token's family or agent is not live")
	ErrUnknownAgent        = errors.New("no such agent")
	ErrUnknownFamily       = errors.New("no such refresh-token family")
	ErrUnknownSession      = errors.New("no such session")
	ErrUnknownTransaction  = errors.New("no such transaction")
	ErrKeyReused           = errors.New("the idempotency key was used for another request")
	ErrTokenLacksScope     = errors.New("the access token does not hold the scope")
	// ErrOrganizationSuspended refuses a good credential of an organization that the operator has suspended.
	ErrOrganizationSuspended = errors.New("the organization is suspended")
	ErrAgentRevoked          = errors.New("the agent is revoked")
	// ErrUnknownOrganization is for callers without an API key: an API key of no organization is ErrInvalidAPIKey.
	ErrUnknownOrganization = errors.New("no such organization")
	ErrBeingDeleted        = errors.New("the organization is being deleted")
	ErrUnknownKey          = errors.New("no such key")
	ErrKeyInUse            = errors.New("the key is the one that signs now")

	errHoldsDue = errors.New("holds of the session are due and go first; nothing was done")
)

// ErrTokenReused refuses a spent refresh token that was used again. Its family is revoked.
var ErrTokenReused error = &redisclient.WritingRefusal{Text: "a spent refresh token was used again; its family is revoked"}

// NotActiveError refuses what needs an active session.
type NotActiveError struct{ Status Status }

func (e *NotActiveError) Error() string { return fmt.Sprintf("the session is %s", e.Status) }

// ScopeError refuses a scope that the agent or the session does not hold.
type ScopeError struct{ Scope string }

func (e *ScopeError) Error() string { return fmt.Sprintf("the scope %s is not held", e.Scope) }

// LimitError refuses a charge that does not fit.
type LimitError struct {
	Limit string // max_actions, max_value_usd or max_committed_usd
	Usage Usage  // as it stands; nothing was charged
}

func (e *LimitError) Error() string { return "the session's " + e.Limit + " is reached" }

// BelowUsageError refuses a limit below what is used and held.
type BelowUsageError struct {
	Limit string // max_actions or max_value_usd
	Usage Usage  // as it stands; nothing was changed
}

func (e *BelowUsageError) Error() string { return e.Limit + " must not be below what is used and held" }

// AboveBoundsError refuses to add to a limit that would become more than MostActions or MostValue.
type AboveBoundsError struct{ Limit string } // max_actions or max_value_usd

func (e *AboveBoundsError) Error() string { return e.Limit + " would become more than it may" }

// NotPendingError refuses what needs a pending transaction.
type NotPendingError struct{ Status Status }

func (e *NotPendingError) Error() string { return fmt.Sprintf("the transaction is %s", e.Status) }

// ErrNotReversible refuses to undo a committed transaction that was begun as one that cannot be undone.
var ErrNotReversible = errors.New("the transaction is committed and was begun as not reversible")

// refusals gives the error for every code that a script can answer, but for ok.
var refusals = redisclient.Refusals{
	"invalid_api_key":       refuse(ErrInvalidAPIKey),
	"successor_used":        refuse(ErrSuccessorUsed),
	"invalid_token":         refuse(ErrInvalidToken),
	"invalid_credentials":   refuse(ErrInvalidCredentials),
	"invalid_refresh_token": refuse(ErrInvalidRefreshToken),
	"reused":                refuse(ErrTokenReused),
	"unknown_agent":         refuse(ErrUnknownAgent),
	"unknown_family":        refuse(ErrUnknownFamily),
	"unknown_session":       refuse(ErrUnknownSession),
	"unknown_transaction":   refuse(ErrUnknownTransaction),
	"not_reversible":        refuse(ErrNotReversible),
	"key_reused":            refuse(ErrKeyReused),
	"token_lacks_scope":     refuse(ErrTokenLacksScope),
	"holds_due":             refuse(errHoldsDue),
	"agent_revoked":         refuse(ErrAgentRevoked),
	"unknown_organization":  refuse(ErrUnknownOrganization),
	"being_deleted":         refuse(ErrBeingDeleted),
	"unknown_key":           refuse(ErrUnknownKey),
	"key_in_use":            refuse(ErrKeyInUse),
	"rotation_pending": func(r *reply) error {
		return orBroken(r, &PendingKeyError{ID: r.Text(0), SignsFrom: r.Time(1)})
	},
	"scope_not_held": func(r *reply) error { return orBroken(r, &ScopeError{Scope: r.Text(0)}) },
	"not_active":     refuseNotActive,
	"not_pending": func(r *reply) error {
		status := transactionStatus(Status(r.Text(3)), transactionEvents{r.Time(0), r.Text(1), r.Time(2)})
		return orBroken(r, &NotPendingError{status})
	},
	"below_usage": func(r *reply) error {
		return orBroken(r, &BelowUsageError{Limit: r.Text(0), Usage: usageAt(r, 1)})
	},
	"over_quota": func(r *reply) error {
		return orBroken(r, &QuotaError{Quota: r.Text(0), Used: r.Number(1), Max: r.Number(2)})
	},
	"above_bounds": func(r *reply) error { return orBroken(r, &AboveBoundsError{Limit: r.Text(0)}) },
	"limit": func(r *reply) error {
		return orBroken(r, &LimitError{Limit: r.Text(0), Usage: usageAt(r, 1)})
	},
}

func refuse(err error) func(*reply) error { return func(*reply) error { return err } }

func refuseNotActive(r *reply) error {
	status := statusAt(r.Time(3), lifeEvents{ended: r.TimeOrZero(0), revoked: r.TimeOrZero(1), expires: r.Time(2)})
	return orBroken(r, &NotActiveError{status})
}

// orBroken returns the refusal unless its reply could not be read; call it with the refusal already read.
func orBroken(r *reply, refusal error) error {
	if r.Err != nil {
		return r.Err
	}
	return refusal
}

// lifeEvents is what a session's status follows from. A zero time has not come.
type lifeEvents struct{ ended, revoked, expires time.Time }

// statusAt is the one rule for a session's status: whichever came first, its end, its agent's revocation or its expiry.
func statusAt(now time.Time, e lifeEvents) Status {
	switch {
	case !e.ended.IsZero():
		return Completed
	case !e.revoked.IsZero() && (e.revoked.Before(e.expires) || now.Before(e.expires)):
		return Revoked
	case !now.Before(e.expires):
		return Expired
	default:
		return Active
	}
}
