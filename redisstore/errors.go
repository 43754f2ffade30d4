package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
)

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
	ErrUnknownWebhook      = errors.New("no such webhook")
	ErrUnknownIssuer       = errors.New("no such trusted issuer")
	// ErrIssuerExists refuses an issuer that the organization trusts already.
	ErrIssuerExists    = errors.New("the organization trusts this issuer already")
	ErrUnknownDelivery = errors.New("no such delivery")
	ErrWebhooksClaimed = errors.New("another instance delivers for the organization")
	// ErrProofRequired refuses to issue a token that is bound to no key, for an agent with DPoPRequired.
	ErrProofRequired = errors.New("the agent's tokens must be bound to a key by a DPoP proof")
	ErrProofUsed     = errors.New("the DPoP proof was used before")
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

	errHoldsDue = errors.New("holds of the session are due and must be released first; nothing was done")
)

// ErrTokenReused refuses a spent refresh token that was used again. Its family is revoked (RFC 9700 §4.14.2).
var ErrTokenReused error = &redisclient.WritingRefusal{Text: "a spent refresh token was used again; its family is revoked"}

// AgentSuspendedError refuses what a suspended agent may not do.
type AgentSuspendedError struct{ Since time.Time }

func (e *AgentSuspendedError) Error() string { return "the agent is suspended" }

// SessionSuspendedError refuses what may not be done in a suspended session.
type SessionSuspendedError struct{ Since time.Time }

func (e *SessionSuspendedError) Error() string { return "the session is suspended" }

// ParentError refuses a child session that does not fit into its parent.
type ParentError struct {
	Parent      uuid.UUID
	*LimitError // Limit may also be expires_at, max_depth or max_open_children
}

// Unwrap returns the limit of the parent.
func (e *ParentError) Unwrap() error { return e.LimitError }

// BudgetError refuses a session that does not fit into its organization's budget. Nothing was changed.
type BudgetError struct {
	Remaining money.MicroUSD
	Resets    time.Time // zero for never
}

func (e *BudgetError) Error() string { return "the organization's budget has no room" }

// BudgetBelowUsageError refuses a budget below what is reserved and used. Nothing was changed.
type BudgetBelowUsageError struct{ Reserved, Used money.MicroUSD }

func (e *BudgetBelowUsageError) Error() string {
	return "max_value_usd must not be below what is reserved and used"
}

// ErrNoBudget says that the organization has no budget.
var ErrNoBudget = errors.New("the organization has no budget")

var (
	// errGivenUp refuses a creation that comes after its part was given back, or too late.
	errGivenUp = errors.New("the part that was set aside for this is given back")
	// errStale refuses limits beyond what the session above has granted.
	errStale = errors.New("the limits exceed what is set aside")
	// errBeyondParent refuses a lifetime beyond that of the session above.
	errBeyondParent = errors.New("the session above does not last so long")
)

func isRoleError(err error) bool {
	var role *RoleError
	return errors.As(err, &role)
}

func isBudgetExhausted(err error) bool {
	var exhausted *BudgetError
	return errors.As(err, &exhausted)
}

func isSuspended(err error) bool {
	var agent *AgentSuspendedError
	var session *SessionSuspendedError
	return errors.As(err, &agent) || errors.As(err, &session)
}

// NotActiveError refuses an operation that needs an active session.
type NotActiveError struct{ Status Status }

func (e *NotActiveError) Error() string { return fmt.Sprintf("the session is %s", e.Status) }

// AudienceError refuses an access token for an audience that the agent's tokens may not be for, or that a refresh token was not
// granted for.
type AudienceError struct{ Audience string }

func (e *AudienceError) Error() string { return fmt.Sprintf("the token may not be for %s", e.Audience) }

// ScopeError refuses a scope that the agent or the session does not hold.
type ScopeError struct{ Scope string }

func (e *ScopeError) Error() string { return fmt.Sprintf("the scope %s is not held", e.Scope) }

// LimitError refuses a charge, a hold or a lease that exceeds a limit.
type LimitError struct {
	// max_actions, max_value_usd, max_committed_usd or max_value_usd_per_action; of a lease also max_lease_seconds, expires_at or
	// max_open_leases; of a request for more max_pending_requests
	Limit string
	Usage Usage // as it stands; nothing was charged
}

func (e *LimitError) Error() string { return "the session's " + e.Limit + " is reached" }

// Needed is what a call wanted that a limit refused.
type Needed struct {
	Actions int64
	Value   money.MicroUSD
}

// NeededError is the refusal of a limit, with what the refused call wanted.
type NeededError struct {
	Needed
	Err error // wraps a *LimitError, an *AgentLimitError or a *BudgetError
}

func (e *NeededError) Error() string { return e.Err.Error() }

// Unwrap returns the refusal.
func (e *NeededError) Unwrap() error { return e.Err }

// Needing adds what a call wanted to the refusal of a limit. It returns any other error unchanged.
func Needing(err error, actions int64, value money.MicroUSD) error {
	var limit *LimitError
	var agentLimit *AgentLimitError
	if !errors.As(err, &limit) && !errors.As(err, &agentLimit) && !isBudgetExhausted(err) {
		return err
	}
	return &NeededError{Needed{actions, value}, err}
}

// BelowUsageError refuses a limit below the amount used and held.
type BelowUsageError struct {
	Limit string // max_actions or max_value_usd
	Usage Usage  // as it stands; nothing was changed
}

func (e *BelowUsageError) Error() string { return e.Limit + " must not be below what is used and held" }

// AboveBoundsError refuses an addition that would raise a limit above MostActions or MostValue.
type AboveBoundsError struct{ Limit string } // max_actions or max_value_usd

func (e *AboveBoundsError) Error() string { return e.Limit + " would become more than it may" }

// AboveAskedError refuses to grant more than a request asked for.
type AboveAskedError struct{ Limit string } // max_actions or max_value_usd

func (e *AboveAskedError) Error() string {
	return "more of " + e.Limit + " is granted than was asked for"
}

// ErrGrantsNothing refuses an approval that grants neither actions nor value.
var ErrGrantsNothing = errors.New("the approval grants nothing")

// ErrRequestDecided refuses to decide a request for more again in another way.
var ErrRequestDecided = errors.New("the request is already decided in another way")

// NotPendingError refuses an operation that needs a pending transaction.
type NotPendingError struct{ Status Status }

func (e *NotPendingError) Error() string { return fmt.Sprintf("the transaction is %s", e.Status) }

// ErrLeaseSettled refuses to settle a lease again with other numbers.
var ErrLeaseSettled = errors.New("the lease is settled with other numbers")

// ErrNotReversible refuses to roll back a committed transaction that was begun as irreversible.
var ErrNotReversible = errors.New("the transaction is committed and was begun as not reversible")

// errNoOutcome says that an idempotency key has no outcome yet.
var errNoOutcome = errors.New("no outcome is stored under this idempotency key")

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

// halfDone turns the failure of a second step into ErrOutcomeUnknown, because the first step has changed something.
func halfDone(err error) error {
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%w: %v", ErrOutcomeUnknown, err) // not wrapped: ErrUnavailable would promise that nothing was changed
	}
	return err
}

func isRefusedCreation(err error) bool {
	var quota *QuotaError
	var tooFast *RateError
	return errors.As(err, &quota) || errors.As(err, &tooFast)
}

// isNoOutcome says whether a refusal is not stored as the outcome of an idempotency key, because the client may correct the
// request, or repeat it later; see idempotent.lua.
func isNoOutcome(err error) bool {
	var scope *ScopeError
	var above *AboveBoundsError
	var agentLimit *AgentLimitError
	return errors.As(err, &agentLimit) || errors.Is(err, ErrUnknownAgent) || errors.Is(err, ErrUnknownSession) || errors.Is(err, ErrUnknownTransaction) ||
		errors.Is(err, ErrUnknownLease) ||
		err == errGivenUp || err == errStale || err == errBeyondParent || err == ErrParentEnforces || isBudgetExhausted(err) || errors.Is(err, ErrTokenLacksScope) || errors.As(err, &scope) || errors.As(err, &above) || isSuspended(err)
}

// nothingVisible turns the ErrOutcomeUnknown of an index write into ErrUnavailable: readers ignore an entry without its
// object, so the write has no visible effect.
func nothingVisible(err error) error {
	if errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %v", ErrUnavailable, err) // not wrapped: the outcome is known now
	}
	return err
}
