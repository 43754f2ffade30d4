package client

import (
	"context"
	"errors"
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
