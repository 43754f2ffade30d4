package redisstore

import (
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// A transaction is one of these, or Expired.
const (
	Pending    Status = "pending"
	Committed  Status = "committed"
	RolledBack Status = "rolled_back"
)

// Transaction is an action with a pre-state that is committed or rolled back.
type Transaction struct {
	ID         uuid.UUID
	Agent      uuid.UUID
	Session    uuid.UUID // uuid.Nil for none
	Sequence   int64     // in its session, from 1 on; 0 without a session
	Status     Status    // at the time of the read
	ActionType string
	PreState   string         // JSON object; "" in lists
	PostState  string         // JSON object, "" for none, and in lists
	Hold       money.MicroUSD // as begun or last changed
	Held       money.MicroUSD // Hold while it is pending in a session, else 0
	Value      money.MicroUSD // charged by the commit; 0 unless it was committed
	Overage    money.MicroUSD // cost beyond the session's limit
	Reversible bool           // it can be rolled back after its commit
	Reason     string         // of the rollback, "" for none
	Metadata   string         // JSON object, "" for none, and in lists
	Created    time.Time
	Expires    time.Time // unless it is committed or rolled back before
	Committed  time.Time // zero if it was never committed
	Late       bool      // it was committed after its expiry
	RolledBack time.Time // zero unless it is rolled back
	// WouldRefuse is, in the result of a begin or a change of the hold in a session that observes, the limit that would have
	// refused it; else "".
	WouldRefuse string
}

// NewTransaction describes a transaction to begin.
type NewTransaction struct {
	Session      uuid.UUID // uuid.Nil for none
	ActionType   string
	PreState     string         // JSON object
	Value        money.MicroUSD // to hold; without a session it is only stored
	Lifetime     time.Duration  // how long it may be pending
	Irreversible bool           // its commit cannot be rolled back
	Metadata     string         // JSON object, "" for none
	Idempotency  *Idempotency   // nil for no idempotency key
	DryRun       bool           // only asks what the begin would do; without Idempotency
}

// storedFields returns the names and values of fields that the scripts only store.
func (n NewTransaction) storedFields() []any {
	fields := []any{"ty", n.ActionType, "ps", n.PreState}
	if n.Irreversible {
		fields = append(fields, "ir", 1)
	}
	if n.Metadata != "" {
		fields = append(fields, "md", n.Metadata)
	}
	return fields
}

// Commit is the result of a transaction's action.
type Commit struct {
	Value       *money.MicroUSD // its cost; nil for the held value
	PostState   string          // JSON object, "" for none
	Idempotency *Idempotency    // nil for no idempotency key
}

// Rollback says why a transaction is rolled back.
type Rollback struct {
	Reason      string       // "" for none
	Scopes      []string     // of the access token; to roll back a commit, the session must hold one of them
	Idempotency *Idempotency // nil for no idempotency key
}
