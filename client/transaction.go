package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"remit/money"
)

// rollbackLimit bounds a rollback, which continues when its ctx ends.
const rollbackLimit = 10 * time.Second

// Transaction is an action with a prior state, which Commit or Rollback settles. Use it like one of database/sql:
//
//	tx, err := session.Begin(ctx, client.TransactionParams{ActionType: "payment", PreState: before, Value: price})
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback(ctx, "not finished")
//	// … act …
//	return tx.Commit(ctx, client.CommitParams{PostState: after})
//
// Begin, Commit and Rollback are idempotent: retries have no further effect. A transaction that is never settled expires, and
// its hold is released.
type Transaction struct {
	id     string
	caller *caller
	done   atomic.Bool // settled, being settled, or possibly committed
	info   atomic.Pointer[TransactionInfo]
}

func openTransaction(c *caller, id string) *Transaction {
	t := &Transaction{id: id, caller: c}
	t.info.Store(&TransactionInfo{ID: id})
	return t
}

// ID returns the transaction's id.
func (t *Transaction) ID() string { return t.id }

// Info returns the transaction as the service last returned it. It sends nothing.
func (t *Transaction) Info() TransactionInfo { return *t.info.Load() }

// Commit settles the transaction as done. After success and after [ErrOutcomeUnknown] a deferred Rollback does nothing, so
// that it cannot undo a commit that took effect. To resolve a commit in doubt, call Get or Reverse. After any other error
// except *TransactionNotPending the transaction is still pending.
//
// The service accepts a commit after the transaction has expired, so that spending is always recorded; Info.Late is then
// true. Once the action has been taken, give Commit a ctx that is not about to end.
func (t *Transaction) Commit(ctx context.Context, p CommitParams) error {
	if !t.done.CompareAndSwap(false, true) {
		return ErrTransactionDone
	}
	body := struct {
		Value     *money.MicroUSD `json:"value_usd,omitzero"`
		PostState any             `json:"post_state,omitzero"`
	}{p.Value, asGiven(p.PostState)}
	err := t.send(ctx, t.caller.client.keyed(transactionPath(t.id)+"/commit", p.IdempotencyKey, body))
	if err != nil && !errors.Is(err, ErrOutcomeUnknown) && !isSettled(err) {
		t.done.Store(false)
	}
	return err
}

// Rollback settles the transaction as not done and releases its hold. Info has the prior state to restore. The action stays
// counted. After a Commit or Rollback it returns [ErrTransactionDone] and sends nothing, so that it can be deferred.
//
// It sends the request even when the ctx has ended, and takes 10 seconds at most. It needs no scope.
func (t *Transaction) Rollback(ctx context.Context, reason string) error {
	if !t.done.CompareAndSwap(false, true) {
		return ErrTransactionDone
	}
	err := t.rollBack(ctx, reason)
	if err != nil && !isSettled(err) {
		t.done.Store(false)
	}
	return err
}

// Reverse rolls the transaction back even if it is committed, which Rollback does not, and returns the value to the session.
// For that an agent needs the scope transactions:rollback or admin in its token and its session; otherwise the error is
// *InsufficientScope. Other errors are those of Rollback and *TransactionNotReversible.
func (t *Transaction) Reverse(ctx context.Context, reason string) error {
	err := t.rollBack(ctx, reason)
	if err == nil {
		t.done.Store(true)
	}
	return err
}

func (t *Transaction) rollBack(ctx context.Context, reason string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackLimit)
	defer cancel()
	body := struct {
		Reason string `json:"reason,omitzero"`
	}{reason}
	return t.send(ctx, t.caller.client.keyed(transactionPath(t.id)+"/rollback", "", body))
}

// send sends q and stores the transaction that it returns.
func (t *Transaction) send(ctx context.Context, q call) error {
	var info TransactionInfo
	err := t.caller.do(ctx, q, &info)
	if err == nil {
		t.info.Store(&info)
	}
	return err
}

// isSettled reports whether err says that the transaction is settled.
func isSettled(err error) bool {
	var settled *TransactionNotPending
	var irreversible *TransactionNotReversible
	return errors.As(err, &settled) || errors.As(err, &irreversible)
}

// TransactionParams describe a new transaction.
type TransactionParams struct {
	ActionType   string         // 1 to 200 characters
	PreState     any            // the state to restore after a rollback: a JSON object of at most 64 KiB; nil: {}
	Value        money.MicroUSD // to be held; needs a session
	ExpiresIn    time.Duration  // after which the hold is released, to the second, up to 30 days; 0: 5 minutes
	Irreversible bool           // once committed, it cannot be rolled back
	OnExpiry     string         // of a session's: "commit" spends the hold when it expires, also after the session has ended; empty: released
	Metadata     any            // a JSON object of at most 16 KiB

	// With Ask, a Begin beyond the session's limit asks for what is missing, as a Charge does.
	OnLimit OnLimit
	Reason  string // for who decides; Ask requires it

	IdempotencyKey string // empty: a random one
}

// CommitParams are the outcome of a transaction. The zero value commits what is held.
type CommitParams struct {
	// Value is what was spent; nil: what is held. If it is less than the hold, the rest is released. If it is more, the excess
	// is charged as far as the session's limit allows, and TransactionInfo.Overage is the remainder.
	Value     *money.MicroUSD
	PostState any // the state after the action: a JSON object of at most 64 KiB

	IdempotencyKey string // empty: a random one
}

// TransactionInfo is a transaction as the service returns it. Lists omit PreState, PostState and Metadata.
type TransactionInfo struct {
	ID             string          `json:"id"`
	AgentID        string          `json:"agent_id"`
	SessionID      string          `json:"session_id"`      // empty: none
	SequenceNumber int64           `json:"sequence_number"` // in its session, from 1, without gaps; 0: no session
	Status         string          `json:"status"`          // pending, committed, rolled_back or expired
	ActionType     string          `json:"action_type"`
	PreState       json.RawMessage `json:"pre_state"`
	PostState      json.RawMessage `json:"post_state"`     // nil: none
	Value          money.MicroUSD  `json:"value_usd"`      // its initial value; once committed, the value charged
	ValueHeld      money.MicroUSD  `json:"value_held_usd"` // while it is pending
	Overage        money.MicroUSD  `json:"overage_usd"`    // spent beyond the session's limit
	Late           bool            `json:"late,omitzero"`  // committed after it had expired
	Reversible     bool            `json:"reversible"`
	OnExpiry       string          `json:"on_expiry,omitzero"`  // commit: its hold is spent when it expires; empty: released
	HeldBy         string          `json:"held_by,omitzero"`    // gateway: the metering gateway settles it, and no agent does; empty: its agent
	SettledBy      string          `json:"settled_by,omitzero"` // expiry: it is committed because its hold was spent, and a Commit may still correct it
	Reason         string          `json:"reason"`              // of the rollback
	Metadata       json.RawMessage `json:"metadata"`
	ExpiresAt      time.Time       `json:"expires_at"`
	CreatedAt      time.Time       `json:"created_at"`
	WouldRefuse    string          `json:"would_refuse,omitzero"` // at its begin, the limit of a session that only observes its limits
	CommittedAt    time.Time       `json:"committed_at,omitzero"`
	RolledBackAt   time.Time       `json:"rolled_back_at,omitzero"`
}

// TransactionFilter narrows a list of transactions. The zero value selects all.
type TransactionFilter struct {
	Status    string // pending, committed, rolled_back or expired
	SessionID string
	AgentID   string
	SettledBy string // expiry
}

// transactionBody is a TransactionParams on the wire.
type transactionBody struct {
	ActionType string         `json:"action_type"`
	PreState   any            `json:"pre_state,omitzero"`
	SessionID  string         `json:"session_id,omitzero"`
	Value      money.MicroUSD `json:"value_usd,omitzero"`
	ExpiresIn  int64          `json:"expires_in_seconds,omitzero"`
	Reversible bool           `json:"reversible"`
	OnExpiry   string         `json:"on_expiry,omitzero"`
	Metadata   any            `json:"metadata,omitzero"`
}

func (p TransactionParams) body(session string) transactionBody {
	return transactionBody{p.ActionType, preState(p.PreState), session, p.Value, seconds(p.ExpiresIn), !p.Irreversible, p.OnExpiry, asGiven(p.Metadata)}
}

// DryRun is what a transaction that was only tried would have met.
type DryRun struct {
	// WouldRefuse is the limit that would have refused it, if the session did not only observe its limits; empty: none.
	WouldRefuse string `json:"would_refuse,omitzero"`
}

// DryRunBegin reports whether Begin would succeed now, and begins nothing. Its errors are those of Begin. It ignores OnLimit and
// IdempotencyKey.
func (s *Session) DryRunBegin(ctx context.Context, p TransactionParams) (DryRun, error) {
	body := struct {
		transactionBody
		DryRun bool `json:"dry_run"`
	}{p.body(s.id), true}
	return decoded[DryRun](ctx, s.caller, call{method: http.MethodPost, path: "/v1/transactions", body: body})
}

func (c *caller) begin(ctx context.Context, body transactionBody, key string) (*Transaction, error) {
	t := openTransaction(c, "")
	err := t.send(ctx, c.client.keyed("/v1/transactions", key, body))
	if err != nil {
		return nil, err
	}
	t.id = t.Info().ID
	return t, nil
}

// preState sends an empty object for none, because older services require one.
func preState(state any) any {
	if state == nil {
		return struct{}{}
	}
	return asGiven(state)
}

func (c *caller) transactions(ctx context.Context, f TransactionFilter) iter.Seq2[TransactionInfo, error] {
	return list[TransactionInfo](ctx, c, "/v1/transactions", perPage,
		"status", f.Status, "session_id", f.SessionID, "agent_id", f.AgentID, "settled_by", f.SettledBy)
}

// TransactionChanges change a pending transaction. Omitted fields stay.
type TransactionChanges struct {
	Value     *money.MicroUSD // to hold from now on; nil: omitted
	ExpiresIn time.Duration   // from now, to the second
}

// Update changes the hold or the expiry of a pending transaction. A hold that exceeds the session's limit is a *LimitReached
// and changes nothing. If the transaction is not pending the error is *TransactionNotPending.
func (t *Transaction) Update(ctx context.Context, c TransactionChanges) error {
	body := struct {
		Value     *money.MicroUSD `json:"value_usd,omitzero"`
		ExpiresIn int64           `json:"expires_in_seconds,omitzero"`
	}{c.Value, seconds(c.ExpiresIn)}
	return t.send(ctx, call{method: http.MethodPatch, path: transactionPath(t.id), body: body, semantics: idempotent})
}

// Get reads the transaction and updates its Info.
func (t *Transaction) Get(ctx context.Context) (TransactionInfo, error) {
	err := t.send(ctx, call{method: http.MethodGet, path: transactionPath(t.id)})
	return t.Info(), err
}
