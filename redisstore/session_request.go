package redisstore

import (
	"time"

	"github.com/google/uuid"
	"remit/money"
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
