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

// Transaction is an action with a prior state, which is committed or rolled back.
type Transaction struct {
	ID         uuid.UUID
	Agent      uuid.UUID
	Session    uuid.UUID // uuid.Nil for none
	Sequence   int64     // in its session, from 1 on; 0 without a session
	Status     Status    // as it was when read
	ActionType string
	PreState   string         // JSON object; "" in lists
	PostState  string         // JSON object, "" for none, and in lists
	Hold       money.MicroUSD // what it was begun with, or last changed to
	Held       money.MicroUSD // what of that it holds: all while it is pending in a session, then nothing
	Value      money.MicroUSD // what it was charged; 0 unless it was committed
	Overage    money.MicroUSD // what it cost beyond the session's limit
	Reversible bool           // it can be rolled back after it was committed
	Reason     string         // of the rollback, "" for none
	Metadata   string         // JSON object, "" for none, and in lists
	Created    time.Time
	Expires    time.Time // unless it is committed or rolled back before
	Committed  time.Time // zero if it never was
	Late       bool      // it was committed after it had expired
	RolledBack time.Time // zero unless it is
}

// NewTransaction is what a transaction begins with.
type NewTransaction struct {
	Session      uuid.UUID // uuid.Nil for none
	ActionType   string
	PreState     string         // JSON object
	Value        money.MicroUSD // to hold; without a session only noted
	Lifetime     time.Duration  // that it may be pending
	Irreversible bool           // once it is committed
	Metadata     string         // JSON object, "" for none
	Idempotency  *Idempotency   // nil for without an idempotency key
}

// storedFields returns names and values of what a transaction's scripts only keep.
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

// Commit is how a transaction came out.
type Commit struct {
	Value       *money.MicroUSD // what it cost; nil for what it holds
	PostState   string          // JSON object, "" for none
	Idempotency *Idempotency    // nil for without an idempotency key
}

// Rollback is why a transaction is undone.
type Rollback struct {
	Reason      string       // "" for none
	Scopes      []string     // of the access token: any that the session holds too lets it undo a commit
	Idempotency *Idempotency // nil for without an idempotency key
}
