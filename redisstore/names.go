package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// Names of package redisclient that callers of the store need.
type (
	// Durability says when a write is acknowledged: Local or Replicated.
	Durability = redisclient.Durability
	// NotReadyError says why the store cannot be used now, in a text without secrets. It is an ErrUnavailable.
	NotReadyError = redisclient.NotReadyError
)

const (
	// Local acknowledges a write once the primary has it.
	Local = redisclient.Local
	// Replicated acknowledges a write once a replica has confirmed it too.
	Replicated = redisclient.Replicated
	// ConnectionsPerServer is the most connections that a store opens to each server.
	ConnectionsPerServer = redisclient.ConnectionsPerServer
)

var (
	// ErrUnavailable means that Redis cannot be reached or cannot write now. Nothing was changed.
	ErrUnavailable = redisclient.ErrUnavailable
	// ErrOverloaded is the ErrUnavailable of a call that was shed at once, unsent.
	ErrOverloaded = redisclient.ErrOverloaded
	// ErrOutcomeUnknown means that the reply to a write was lost. The write may have happened.
	ErrOutcomeUnknown = redisclient.ErrOutcomeUnknown
)

// Short names for what each resource uses.
type (
	flow   = redisclient.Flow
	script = redisclient.Script
	reply  = redisclient.Reply
)

const (
	reads      = redisclient.Reads
	writes     = redisclient.Writes
	bestEffort = redisclient.BestEffort

	callTimeout = redisclient.CallTimeout
)

var errReply = redisclient.ErrReply

// Names of the rooms' common part that callers of the store need.
type (
	APIKey                = kernel.APIKey
	AboveBoundsError      = kernel.AboveBoundsError
	AccessToken           = kernel.AccessToken
	AgentLimitError       = kernel.AgentLimitError
	AgentSuspendedError   = kernel.AgentSuspendedError
	AudienceError         = kernel.AudienceError
	BudgetError           = kernel.BudgetError
	Caller                = kernel.Caller
	Event                 = kernel.Event
	Idempotency           = kernel.Idempotency
	KeyKind               = kernel.KeyKind
	Organization          = kernel.Organization
	Query                 = kernel.Query
	QuotaError            = kernel.QuotaError
	RateError             = kernel.RateError
	Rates                 = kernel.Rates
	Role                  = kernel.Role
	RoleError             = kernel.RoleError
	ScopeError            = kernel.ScopeError
	SessionSuspendedError = kernel.SessionSuspendedError
	Status                = kernel.Status
)

// Page is one page of a list.
type Page[T any] = kernel.Page[T]

const (
	Active      = kernel.Active
	Admin       = kernel.Admin
	Completed   = kernel.Completed
	Expired     = kernel.Expired
	Operator    = kernel.Operator
	Revoked     = kernel.Revoked
	SigningKeys = kernel.SigningKeys
	TokenKeys   = kernel.TokenKeys
	Viewer      = kernel.Viewer
)

var (
	ErrAgentRevoked          = kernel.ErrAgentRevoked
	ErrBeingDeleted          = kernel.ErrBeingDeleted
	ErrChangedMeanwhile      = kernel.ErrChangedMeanwhile
	ErrIdempotencyKeyReused  = kernel.ErrIdempotencyKeyReused
	ErrInvalidAPIKey         = kernel.ErrInvalidAPIKey
	ErrInvalidCredentials    = kernel.ErrInvalidCredentials
	ErrInvalidRefreshToken   = kernel.ErrInvalidRefreshToken
	ErrInvalidToken          = kernel.ErrInvalidToken
	ErrIssuerExists          = kernel.ErrIssuerExists
	ErrKeyInUse              = kernel.ErrKeyInUse
	ErrLastAdminKey          = kernel.ErrLastAdminKey
	ErrLeaseSettled          = kernel.ErrLeaseSettled
	ErrManyAssertions        = kernel.ErrManyAssertions
	ErrManyMarks             = kernel.ErrManyMarks
	ErrManyProofs            = kernel.ErrManyProofs
	ErrManySessionKeys       = kernel.ErrManySessionKeys
	ErrUnboundSessionKey     = kernel.ErrUnboundSessionKey
	ErrNoBudget              = kernel.ErrNoBudget
	ErrNotReversible         = kernel.ErrNotReversible
	ErrHeldByGateway         = kernel.ErrHeldByGateway
	ErrOrganizationSuspended = kernel.ErrOrganizationSuspended
	ErrParentEnforces        = kernel.ErrParentEnforces
	ErrProofRequired         = kernel.ErrProofRequired
	ErrProofUsed             = kernel.ErrProofUsed
	ErrRequestDecided        = kernel.ErrRequestDecided
	ErrSealed                = kernel.ErrSealed
	ErrSuccessorUsed         = kernel.ErrSuccessorUsed
	ErrTokenLacksScope       = kernel.ErrTokenLacksScope
	ErrTokenReused           = kernel.ErrTokenReused
	ErrUnknownAPIKey         = kernel.ErrUnknownAPIKey
	ErrUnknownAgent          = kernel.ErrUnknownAgent
	ErrUnknownDelivery       = kernel.ErrUnknownDelivery
	ErrUnknownFamily         = kernel.ErrUnknownFamily
	ErrUnknownIssuer         = kernel.ErrUnknownIssuer
	ErrUnknownLease          = kernel.ErrUnknownLease
	ErrUnknownOrganization   = kernel.ErrUnknownOrganization
	ErrUnknownRequest        = kernel.ErrUnknownRequest
	ErrUnknownSessionKey     = kernel.ErrUnknownSessionKey
	ErrUnknownSession        = kernel.ErrUnknownSession
	ErrUnknownTransaction    = kernel.ErrUnknownTransaction
	ErrUnknownWebhook        = kernel.ErrUnknownWebhook
	ErrWebhooksClaimed       = kernel.ErrWebhooksClaimed
)

// NewRootID returns a fresh id in a random cell, for an organization or an agent.
func NewRootID() uuid.UUID { return kernel.NewRootID() }

// NewID returns a fresh id in the cell of its owner.
func NewID(owner uuid.UUID) uuid.UUID { return kernel.NewID(owner) }

// AppendID appends the id in its text form (RFC 9562 §4).
func AppendID(text []byte, id uuid.UUID) []byte { return kernel.AppendID(text, id) }

// ParseQuotas reads name=value pairs, separated by commas. A value is a whole number up to 10^15, 0 for unbounded, or
// "default". It returns DefaultQuota for "default".
func ParseQuotas(text string) (map[string]int64, error) { return kernel.ParseQuotas(text) }

// ParseRole returns the role of this name, and whether there is one.
func ParseRole(name string) (Role, bool) { return kernel.ParseRole(name) }

// WithRequestID returns a context for the operations of one request.
func WithRequestID(ctx context.Context, id string) context.Context {
	return kernel.WithRequestID(ctx, id)
}

// WithActor is WithRequestID for a request that this agent makes with a delegated token: the audit trail of the token's agent
// names it.
func WithActor(ctx context.Context, id string, actor uuid.UUID) context.Context {
	return kernel.WithActor(ctx, id, actor)
}
