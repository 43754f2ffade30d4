package redisstore

import (
	"errors"
	"fmt"
	"time"

	"remit/redisclient"
)

// Refusals of the store. None has changed anything, except ErrTokenReused, which has revoked its family.
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
	// ErrUnknownOrganization is for callers without an API key. An API key of no organization is ErrInvalidAPIKey.
	ErrUnknownOrganization = errors.New("no such organization")
	ErrBeingDeleted        = errors.New("the organization is being deleted")
	ErrUnknownKey          = errors.New("no such key")
	ErrKeyInUse            = errors.New("the key is the one that signs now")

	errHoldsDue = errors.New("holds of the session are due and go first; nothing was done")
)

// ErrTokenReused refuses a spent refresh token that was used again. Its family is revoked.
var ErrTokenReused error = &redisclient.WritingRefusal{Text: "a spent refresh token was used again; its family is revoked"}

// NotActiveError refuses an operation that needs an active session.
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

// NotPendingError refuses an operation that needs a pending transaction.
type NotPendingError struct{ Status Status }

func (e *NotPendingError) Error() string { return fmt.Sprintf("the transaction is %s", e.Status) }

// ErrNotReversible refuses to undo a committed transaction that was begun as one that cannot be undone.
var ErrNotReversible = errors.New("the transaction is committed and was begun as not reversible")

// errNoOutcome says that an idempotency key has no outcome yet.
var errNoOutcome = errors.New("no outcome is stored under this idempotency key")

// QuotaError refuses an operation that would take an organization beyond a quota, or beyond its fair share of a Redis that is nearly
// full. Nothing was changed.
type QuotaError struct {
	Quota     string // a name of ParseQuotas
	Used, Max int64
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("the organization's quota of %s is reached", e.Quota)
}

// RateError refuses a creation because an organization or an agent creates too fast. Nothing was changed.
type RateError struct {
	Limit      string // organization_rate or agent_rate
	RetryAfter time.Duration
}

func (e *RateError) Error() string {
	return "too much is created at once: the " + e.Limit + " is reached"
}

func isRefusedCreation(err error) bool {
	var quota *QuotaError
	var tooFast *RateError
	return errors.As(err, &quota) || errors.As(err, &tooFast)
}

// isNoOutcome says whether a refusal is about what the request names, which the client may correct; see idempotent.lua.
func isNoOutcome(err error) bool {
	var scope *ScopeError
	var above *AboveBoundsError
	return errors.Is(err, ErrUnknownAgent) || errors.Is(err, ErrUnknownSession) || errors.Is(err, ErrUnknownTransaction) ||
		errors.Is(err, ErrTokenLacksScope) || errors.As(err, &scope) || errors.As(err, &above)
}

// nothingVisible turns the doubt about an index write into ErrUnavailable: readers ignore an entry without its object.
func nothingVisible(err error) error {
	if errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %v", ErrUnavailable, err) // not wrapped: it is no longer in doubt
	}
	return err
}
