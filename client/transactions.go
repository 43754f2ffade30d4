package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"

	"remit/money"
)

// TransactionParams describe a new transaction.
type TransactionParams struct {
	ActionType   string         // 1 to 200 characters
	PreState     any            // how things are now, to be restored by whoever rolls back: a JSON object of at most 64 KiB; nil: {}
	Value        money.MicroUSD // to be held; needs a session
	ExpiresIn    time.Duration  // after which the hold is released, to the second, up to 30 days; 0: 5 minutes
	Irreversible bool           // once committed, it cannot be rolled back
	Metadata     any            // a JSON object of at most 16 KiB

	IdempotencyKey string // empty: a random one
}

// CommitParams say how a transaction came out. The zero value commits what is held.
type CommitParams struct {
	// Value is what was really spent; nil: what is held. Of less the rest is released. Of more the excess is charged as
	// far as the session allows; TransactionInfo.Overage is what did not fit.
	Value     *money.MicroUSD
	PostState any // how things are now; a JSON object of at most 64 KiB

	IdempotencyKey string // empty: a random one
}

// TransactionInfo is a transaction as the service shows it. Lists leave out PreState, PostState and Metadata.
type TransactionInfo struct {
	ID             string          `json:"id"`
	AgentID        string          `json:"agent_id"`
	SessionID      string          `json:"session_id"`      // empty: none
	SequenceNumber int64           `json:"sequence_number"` // in its session, from 1, without gaps; 0: no session
	Status         string          `json:"status"`          // pending, committed, rolled_back or expired
	ActionType     string          `json:"action_type"`
	PreState       json.RawMessage `json:"pre_state"`
	PostState      json.RawMessage `json:"post_state"`     // nil: none
	Value          money.MicroUSD  `json:"value_usd"`      // what it was begun with; once committed, what was charged
	ValueHeld      money.MicroUSD  `json:"value_held_usd"` // while it is pending
	Overage        money.MicroUSD  `json:"overage_usd"`    // spent beyond the session's limit
	Late           bool            `json:"late,omitzero"`  // committed after it had expired
	Reversible     bool            `json:"reversible"`
	Reason         string          `json:"reason"` // of the rollback
	Metadata       json.RawMessage `json:"metadata"`
	ExpiresAt      time.Time       `json:"expires_at"`
	CreatedAt      time.Time       `json:"created_at"`
	CommittedAt    time.Time       `json:"committed_at,omitzero"`
	RolledBackAt   time.Time       `json:"rolled_back_at,omitzero"`
}

// TransactionFilter narrows a list of transactions. The zero value is all of them.
type TransactionFilter struct {
	Status    string // pending, committed, rolled_back or expired
	SessionID string
	AgentID   string
}

func (c *caller) begin(ctx context.Context, session string, p TransactionParams) (*Transaction, error) {
	body := struct {
		ActionType string         `json:"action_type"`
		PreState   any            `json:"pre_state,omitzero"`
		SessionID  string         `json:"session_id,omitzero"`
		Value      money.MicroUSD `json:"value_usd,omitzero"`
		ExpiresIn  int64          `json:"expires_in_seconds,omitzero"`
		Reversible bool           `json:"reversible"`
		Metadata   any            `json:"metadata,omitzero"`
	}{p.ActionType, preState(p.PreState), session, p.Value, seconds(p.ExpiresIn), !p.Irreversible, p.Metadata}
	t := openTransaction(c, "")
	err := t.ask(ctx, c.client.keyed("/v1/transactions", p.IdempotencyKey, body))
	if err != nil {
		return nil, err
	}
	t.id = t.Info().ID
	return t, nil
}

// preState is sent also when there is none, as services before this SDK's required it.
func preState(given any) any {
	if given == nil {
		return struct{}{}
	}
	return given
}

func (c *caller) transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return list[TransactionInfo](ctx, c, "/v1/transactions", perPage,
		"status", f.Status, "session_id", f.SessionID, "agent_id", f.AgentID)
}

// TransactionChanges change a pending transaction. What is left out stays.
type TransactionChanges struct {
	Value     *money.MicroUSD // to be held from now on; nil: left out
	ExpiresIn time.Duration   // from now, to the second
}

// Update changes a pending transaction: it raises or lowers what is held, or gives it more time. What does not fit is a
// *LimitReached and changes nothing; of one that is not pending, *TransactionNotPending tells.
func (t *Transaction) Update(ctx context.Context, c TransactionChanges) error {
	body := struct {
		Value     *money.MicroUSD `json:"value_usd,omitzero"`
		ExpiresIn int64           `json:"expires_in_seconds,omitzero"`
	}{c.Value, seconds(c.ExpiresIn)}
	return t.ask(ctx, call{method: http.MethodPatch, path: transactionPath(t.id), body: body, effect: repeats})
}

// Get reads the transaction, which is then its Info.
func (t *Transaction) Get(ctx context.Context) (TransactionInfo, error) {
	err := t.ask(ctx, call{method: http.MethodGet, path: transactionPath(t.id)})
	return t.Info(), err
}
