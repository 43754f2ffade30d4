package redisstore

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// LeaseOpen and LeaseSettled are states of a lease, which may also be Expired: then all of it counts as spent, until it is settled.
const (
	LeaseOpen    Status = "open"
	LeaseSettled Status = "settled"
)

// Lease is a part of a session's limits that its holder spends without asking.
type Lease struct {
	ID         uuid.UUID
	Agent      uuid.UUID
	Session    uuid.UUID
	Status     Status // at the time of the read
	MaxActions int64
	MaxValue   money.MicroUSD
	Created    time.Time
	Expires    time.Time
	Settlement *Settlement // nil until it is settled

	WouldRefuse string // in the result of a grant in a session that observes, the limit that would have refused it; else ""
}

// NewLease describes a lease to grant. One of MaxActions and MaxValue is more than 0.
type NewLease struct {
	MaxActions  int64
	MaxValue    money.MicroUSD
	Lifetime    time.Duration
	Partial     bool         // grant of each what fits, if that is more than 0
	Idempotency *Idempotency // nil for no idempotency key; a renewal has none
}

// NewSettlement says what was spent of a lease.
type NewSettlement struct {
	ActionCount int64
	ValueUsed   money.MicroUSD
	Types       []TypeUsage  // what of it has an action type; at most 64
	Renew       *NewLease    // nil for none
	Idempotency *Idempotency // nil for no idempotency key
}

// typeLines returns the action types as settle_lease.lua takes them.
func (n NewSettlement) typeLines() []byte {
	var lines []byte
	for _, t := range n.Types {
		lines = fmt.Appendf(lines, "%d %d %s\n", t.ActionCount, int64(t.Value), storedType(t.ActionType))
	}
	return lines
}

// Settlement is what a lease was settled with.
type Settlement struct {
	ActionCount    int64
	ValueUsed      money.MicroUSD
	OverageActions int64          // the part of ActionCount that the session had no room for
	Overage        money.MicroUSD // the same of ValueUsed, and what exceeds the session's MaxPerAction for each action
	ChargedOverage money.MicroUSD // the part of Overage that the session had room for: only MaxPerAction forbids it
	Late           bool           // the lease had expired before
	Settled        time.Time
	Renewed        *Lease // nil for none
	// Refusal is the code of why no renewal was granted, "" for no reason. Limit is the limit that refused it, "" for none, and
	// Needed what was wanted, nil unless waiting does not help.
	Refusal, Limit string
	Needed         *Needed

	Repeated bool // the lease was settled before, with the same numbers; nothing was changed
}
