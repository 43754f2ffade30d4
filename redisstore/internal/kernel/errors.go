package kernel

import (
	"errors"
	"fmt"
	"time"

	"remit/internal/redisclient"
	"remit/money"
)

// MaxChangeAttempts is how often a change of a record is tried again while other requests change it.
const MaxChangeAttempts = 5

// Refusals of the store. A refused operation has changed nothing, except with ErrTokenReused, which revokes the family.
var (
	ErrInvalidAPIKey = errors.New("no organization has this API key")
	ErrSuccessorUsed = errors.New("the API key was replaced and its successor is in use")
	ErrUnknownAPIKey = errors.New("no such API key")
	// ErrLastAdminKey refuses to delete the only admin key that never expires.
	ErrLastAdminKey        = errors.New("the organization has no other admin key that never expires")
	ErrInvalidToken        = errors.New("the access token's agent or family is not live")
	ErrInvalidCredentials  = errors.New("unknown agent, wrong secret or revoked agent")
	ErrInvalidRefreshToken = errors.New("the refresh token's family or agent is not live")
	ErrUnknownAgent        = errors.New("no such agent")
	ErrUnknownFamily       = errors.New("no such refresh-token family")
	ErrUnknownSession      = errors.New("no such session")
	ErrUnknownTransaction  = errors.New("no such transaction")
	ErrUnknownLease        = errors.New("no such lease")
	ErrUnknownRequest      = errors.New("no such request")
	ErrUnknownSessionKey   = errors.New("no such session key")
	ErrManySessionKeys     = errors.New("a session has at most 8 keys")
	ErrUnknownWebhook      = errors.New("no such webhook")
	ErrUnknownIssuer       = errors.New("no such trusted issuer")
	// ErrIssuerExists refuses an issuer that the organization trusts already.
	ErrIssuerExists    = errors.New("the organization trusts this issuer already")
	ErrUnknownDelivery = errors.New("no such delivery")
	ErrWebhooksClaimed = errors.New("another instance delivers for the organization")
	// ErrProofRequired refuses to issue a token that is bound to no key, for an agent with DPoPRequired.
	ErrProofRequired = errors.New("the agent's tokens must be bound to a key by a DPoP proof")
	// ErrUnboundSessionKey refuses a session key, which is bound to no key, for an agent with DPoPRequired.
	ErrUnboundSessionKey = errors.New("the agent's tokens must be bound to a key, and a session key is bound to none")
	ErrProofUsed         = errors.New("the DPoP proof was used before")
	// ErrManyMarks refuses to revoke one more token without a refresh token by itself before the mark of another has lapsed.
	ErrManyMarks  = errors.New("too many tokens of the agent without a refresh token were revoked one by one")
	ErrManyProofs = errors.New("the agent has used too many DPoP proofs within the last minutes")
	// ErrManyAssertions refuses a further assertion of an agent before some of those that it has used have expired.
	ErrManyAssertions = errors.New("the agent has used too many assertions within the last minutes")
	// ErrChangedMeanwhile refuses to store what was made from a record that is another by now.
	ErrChangedMeanwhile     = errors.New("it was changed meanwhile")
	ErrIdempotencyKeyReused = errors.New("the idempotency key was used for another request")
	ErrTokenLacksScope      = errors.New("the access token does not hold the scope")
	// ErrOrganizationSuspended refuses a valid credential of an organization that the operator has suspended.
	ErrOrganizationSuspended = errors.New("the organization is suspended")
	ErrAgentRevoked          = errors.New("the agent is revoked")
	// ErrUnknownOrganization is for operations without an API key. An API key of no organization is ErrInvalidAPIKey.
	ErrUnknownOrganization = errors.New("no such organization")
	ErrBeingDeleted        = errors.New("the organization is being deleted")
	ErrUnknownKey          = errors.New("no such key")
	ErrKeyInUse            = errors.New("the key is the one that signs now")
	// ErrParentEnforces refuses to let a session observe whose parent does not.
	ErrParentEnforces = errors.New("the session has a parent that enforces its limits")

	ErrHoldsDue = errors.New("holds of the session are due and must be released first; nothing was done")
)

// ErrTokenReused refuses a spent refresh token that was used again. Its family is revoked (RFC 9700 §4.14.2).
var ErrTokenReused error = &redisclient.WritingRefusal{Text: "a spent refresh token was used again; its family is revoked"}

// AgentSuspendedError refuses what a suspended agent may not do.
type AgentSuspendedError struct{ Since time.Time }

func (e *AgentSuspendedError) Error() string { return "the agent is suspended" }

// BudgetError refuses a session that does not fit into its organization's budget. Nothing was changed.
type BudgetError struct {
	Remaining money.MicroUSD
	Resets    time.Time // zero for never
}

func (e *BudgetError) Error() string { return "the organization's budget has no room" }

// ErrNoBudget says that the organization has no budget.
var ErrNoBudget = errors.New("the organization has no budget")

var (
	// ErrGivenUp refuses a creation that comes after its part was given back, or too late.
	ErrGivenUp = errors.New("the part that was set aside for this is given back")
	// ErrStale refuses limits beyond what the session above has granted.
	ErrStale = errors.New("the limits exceed what is set aside")
	// ErrBeyondParent refuses a lifetime beyond that of the session above.
	ErrBeyondParent = errors.New("the session above does not last so long")
)

// IsRoleError says whether an API key was refused because of its role.
func IsRoleError(err error) bool { return isA[*RoleError](err) }

// IsBudgetExhausted says whether the organization's budget had no room.
func IsBudgetExhausted(err error) bool { return isA[*BudgetError](err) }

// IsSuspended says whether an agent or a session is suspended.
func IsSuspended(err error) bool {
	return isA[*AgentSuspendedError](err) || isA[*SessionSuspendedError](err)
}

// isA says whether an error is of this type, or wraps one that is.
func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// AudienceError refuses an access token for an audience that the agent's tokens may not be for, or that a refresh token was not
// granted for.
type AudienceError struct{ Audience string }

func (e *AudienceError) Error() string { return fmt.Sprintf("the token may not be for %s", e.Audience) }

// ScopeError refuses a scope that the agent or the session does not hold.
type ScopeError struct{ Scope string }

func (e *ScopeError) Error() string { return fmt.Sprintf("the scope %s is not held", e.Scope) }

// AboveBoundsError refuses an addition that would raise a limit above MostActions or MostValue.
type AboveBoundsError struct{ Limit string } // max_actions or max_value_usd

func (e *AboveBoundsError) Error() string { return e.Limit + " would become more than it may" }

// ErrRequestDecided refuses to decide a request for more again in another way.
var ErrRequestDecided = errors.New("the request is already decided in another way")

// ErrLeaseSettled refuses to settle a lease again with other numbers.
var ErrLeaseSettled = errors.New("the lease is settled with other numbers")

// ErrNotReversible refuses to roll back a committed transaction that was begun as irreversible.
var ErrNotReversible = errors.New("the transaction is committed and was begun as not reversible")

// ErrHeldByGateway refuses an agent that would settle or change a transaction that the metering gateway holds.
var ErrHeldByGateway = errors.New("the gateway holds this transaction: no agent commits it, rolls it back or changes it")

// ErrNoOutcome says that an idempotency key has no outcome yet.
var ErrNoOutcome = errors.New("no outcome is stored under this idempotency key")

// QuotaError refuses a creation that would exceed an organization's quota, or its fair share of a Redis that is nearly full.
// Nothing was changed.
type QuotaError struct {
	Quota     string // a name of ParseQuotas
	Used, Max int64  // bytes for the quota of that name, else a count
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("the organization's quota of %s is reached", e.Quota)
}

// RateError refuses a creation because the organization or the agent creates too fast. Nothing was changed.
type RateError struct {
	Limit      string // organization_rate or agent_rate
	RetryAfter time.Duration
}

func (e *RateError) Error() string {
	return "too much is created at once: the " + e.Limit + " is reached"
}

// HalfDone turns the failure of a second step into ErrOutcomeUnknown, because the first step has changed something.
func HalfDone(err error) error {
	if errors.Is(err, redisclient.ErrUnavailable) {
		return fmt.Errorf("%w: %v", redisclient.ErrOutcomeUnknown, err) // not wrapped: ErrUnavailable would promise that nothing was changed
	}
	return err
}

// IsRefusedCreation says whether a quota or a rate refused a creation.
func IsRefusedCreation(err error) bool {
	return isA[*QuotaError](err) || isA[*RateError](err)
}

// IsNoOutcome says whether a refusal is not stored as the outcome of an idempotency key, because the client may correct the
// request, or repeat it later; see idempotent.lua.
func IsNoOutcome(err error) bool {
	return isA[*AgentLimitError](err) || errors.Is(err, ErrUnknownAgent) || errors.Is(err, ErrUnknownSession) || errors.Is(err, ErrUnknownTransaction) ||
		errors.Is(err, ErrUnknownLease) ||
		err == ErrGivenUp || err == ErrStale || err == ErrBeyondParent || err == ErrParentEnforces || IsBudgetExhausted(err) || errors.Is(err, ErrTokenLacksScope) || isA[*ScopeError](err) || isA[*AboveBoundsError](err) || IsSuspended(err)
}

// NothingVisible turns the ErrOutcomeUnknown of a write that has no visible effect, or may be repeated, into ErrUnavailable. Readers
// ignore an index entry without its object.
func NothingVisible(err error) error {
	if errors.Is(err, redisclient.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %v", redisclient.ErrUnavailable, err) // not wrapped: the outcome is known now
	}
	return err
}

// ErrAgentHoldsDue asks for releaseAgentHolds, as ErrHoldsDue asks for release_holds.lua.
var ErrAgentHoldsDue = errors.New("holds that count in the agent's day are due and must be released first; nothing was done")

// IsDue says whether an operation did nothing because holds are due.
func IsDue(err error) bool { return err == ErrHoldsDue || err == ErrAgentHoldsDue }

// SessionSuspendedError refuses what may not be done in a suspended session.
type SessionSuspendedError struct{ Since time.Time }

func (e *SessionSuspendedError) Error() string { return "the session is suspended" }

// AgentLimitError refuses what exceeds a limit of the agent. Nothing was changed.
type AgentLimitError struct {
	Limit      string
	ResetsAt   time.Time     // of LimitValuePerDay: when its day ends
	RetryAfter time.Duration // of LimitActionsPerMinute: when it fits; 0 if it never does
	// Left is what the agent may still use on its day, in the refusal of a begin; nil elsewhere, and without a limit for a day.
	Left *money.MicroUSD
}

func (e *AgentLimitError) Error() string { return "the agent's " + e.Limit + " is reached" }
