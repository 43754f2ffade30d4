package redisstore

import (
	"slices"
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

// Usage is a session's limits and what is used of them. Used and held together never exceed a limit, except in a session that
// observes or has observed.
type Usage struct {
	MaxActions  int64
	ActionCount int64
	MaxValue    money.MicroUSD
	ValueUsed   money.MicroUSD
	ValueHeld   money.MicroUSD // by transactions, and leased
	Delegated   *Delegated     // nil for a session that never had children
	Withheld    money.MicroUSD // the part of MaxValue that MaxCommitted makes unavailable; 0 without MaxCommitted
	Expires     time.Time
	WouldRefuse string // in a session that observes, the limit that would have refused what led to this usage; else ""
}

// RemainingActions is how many actions the limits leave, 0 when more are used.
func (u Usage) RemainingActions() int64 {
	return max(u.MaxActions-u.ActionCount-u.delegated().Actions, 0)
}

// RemainingValue is the value that the limits leave to charge or hold, 0 when more is used and held.
func (u Usage) RemainingValue() money.MicroUSD {
	return max(u.MaxValue-u.Withheld-u.ValueUsed-u.ValueHeld-u.delegated().Value, 0)
}

// Delegated is what a session has set aside for its open children.
type Delegated struct {
	Actions int64
	Value   money.MicroUSD
}

func (u Usage) delegated() Delegated {
	if u.Delegated == nil {
		return Delegated{}
	}
	return *u.Delegated
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
	MaxPerAction   *money.MicroUSD // limit of the value of one charge or hold; nil for none
	Status         Status          // at the time of the read
	Scopes         []string
	Metadata       string // JSON object, "" for none
	Created        time.Time
	Ended          time.Time // zero unless completed
	Parent         uuid.UUID // uuid.Nil for a root
	Thresholds     Thresholds

	Suspended        time.Time // since when; zero while it is not
	SuspensionReason string    // "" for none

	Observes         bool   // it goes beyond its limits, and counts what they would have refused
	ObservedRefusals *int64 // how much that is; nil if it never observed
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

	// See docs/budgets.md.
	keptAbove   bool // its usage counts in a parent or a budget, which has not taken it
	hasChildren bool // or had some
	unsettled   bool // keptAbove, or a child has not given its part back
}

func (v *SessionSummary) inTree() bool { return v.keptAbove || v.hasChildren }

// NewSession describes a session to create.
type NewSession struct {
	Agent        uuid.UUID
	Parent       uuid.UUID // uuid.Nil for a root
	MaxActions   int64
	MaxValue     money.MicroUSD
	MaxCommitted *money.MicroUSD // nil for none
	MaxLease     time.Duration   // in whole seconds; 0 for no leases
	MaxPerAction *money.MicroUSD // of one charge or hold; nil for none
	Lifetime     time.Duration
	WithinParent bool         // a child's lifetime is at most its parent's rest; else a longer one is refused
	Scopes       []string     // nil for all of the agent's; empty for none
	Held         []string     // of which Scopes of a child that are nil may be, by the creator's token; nil for all
	Metadata     string       // JSON object, "" for none
	Idempotency  *Idempotency // nil for no idempotency key
	Observes     bool         // see Session
	Thresholds   Thresholds
}

// enforcementText returns whether the session enforces its limits as create_session.lua takes it.
func (n NewSession) enforcementText() string {
	if n.Observes {
		return enforcementText(&n.Observes)
	}
	return ""
}

// enforcementText returns whether a session observes as scripts take it, "" for nil.
func enforcementText(observes *bool) string {
	switch {
	case observes == nil:
		return ""
	case *observes:
		return "observe"
	default:
		return "enforce"
	}
}

// scopesText returns the scopes as create_session.lua takes them.
func (n NewSession) scopesText() string {
	if n.Scopes != nil && len(n.Scopes) == 0 {
		return " "
	}
	return strings.Join(n.Scopes, " ")
}

// heldOf returns which of a parent's scopes, separated by spaces, the creator may give: a narrow token gives no more than it holds.
func (n NewSession) heldOf(scopes string) string {
	if n.Held == nil {
		return scopes
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(scopes), func(one string) bool { return !slices.Contains(n.Held, one) }), " ")
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

// statusAt is the only rule for a session's status: its end, its agent's revocation or its expiry, whichever was first. An end
// that is not before the expiry stands for the expiry (close_books.lua).
func statusAt(now time.Time, e lifeEvents) Status {
	switch {
	case !e.ended.IsZero() && e.ended.Before(e.expires):
		return Completed
	case !e.revoked.IsZero() && (e.revoked.Before(e.expires) || now.Before(e.expires)):
		return Revoked
	case !now.Before(e.expires), !e.ended.IsZero():
		return Expired
	default:
		return Active
	}
}
