package redisstore

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// Status is the state of an agent, a session or a transaction.
type Status string

// An agent is Active or Revoked; a session can be any of these.
const (
	Active    Status = "active"
	Completed Status = "completed" // ended by a caller
	Expired   Status = "expired"   // it reached its expiry
	Revoked   Status = "revoked"   // its agent was revoked
)

// Usage is a session's limits and what is used of them. Used and held together never exceed a limit.
type Usage struct {
	MaxActions  int64
	ActionCount int64
	MaxValue    money.MicroUSD
	ValueUsed   money.MicroUSD
	ValueHeld   money.MicroUSD // by transactions, and leased
	Withheld    money.MicroUSD // the part of MaxValue that MaxCommitted makes unavailable; 0 without MaxCommitted
	Expires     time.Time
}

// RemainingValue is the value that may still be charged or held.
func (u Usage) RemainingValue() money.MicroUSD {
	return u.MaxValue - u.Withheld - u.ValueUsed - u.ValueHeld
}

// Session is a bounded context of one agent.
type Session struct {
	ID    uuid.UUID
	Agent uuid.UUID
	Usage
	ValueCommitted money.MicroUSD  // everything ever charged or committed, including what was rolled back since
	MaxCommitted   *money.MicroUSD // limit of ValueCommitted plus ValueHeld; nil for none
	ValueOverage   money.MicroUSD  // cost of its transactions beyond its limit; not in ValueCommitted
	MaxLease       time.Duration   // the longest lease; 0 for no leases
	Status         Status          // at the time of the read
	Scopes         []string
	Metadata       string // JSON object, "" for none
	Created        time.Time
	Ended          time.Time // zero unless completed

	Suspended        time.Time // since when; zero while it is not
	SuspensionReason string    // "" for none
}

// SessionSummary is a session in a list.
type SessionSummary struct {
	ID          uuid.UUID
	Agent       uuid.UUID
	Status      Status // at the time of the read
	ActionCount int64
	MaxActions  int64
	ValueUsed   money.MicroUSD
	MaxValue    money.MicroUSD
	Expires     time.Time
}

// NewSession describes a session to create.
type NewSession struct {
	Agent        uuid.UUID
	MaxActions   int64
	MaxValue     money.MicroUSD
	MaxCommitted *money.MicroUSD // nil for none
	MaxLease     time.Duration   // in whole seconds; 0 for no leases
	Lifetime     time.Duration
	Scopes       []string     // nil for all of the agent's; empty for none
	Metadata     string       // JSON object, "" for none
	Idempotency  *Idempotency // nil for no idempotency key
}

// scopesText returns the scopes as create_session.lua takes them.
func (n NewSession) scopesText() string {
	if n.Scopes != nil && len(n.Scopes) == 0 {
		return " "
	}
	return strings.Join(n.Scopes, " ")
}

// maxLeaseText returns the longest lease as create_session.lua takes it.
func (n NewSession) maxLeaseText() string {
	if n.MaxLease == 0 {
		return ""
	}
	return orEmpty(seconds(&n.MaxLease))
}

// lifeEvents determine a session's status. A zero time means that the event has not happened.
type lifeEvents struct{ ended, revoked, expires time.Time }

// statusAt is the only rule for a session's status: its end, its agent's revocation or its expiry, whichever was first.
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
