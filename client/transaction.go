package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"remit/money"
)

// rollbackLimit bounds a rollback, which does not end with its ctx.
const rollbackLimit = 10 * time.Second

// Transaction is an action with a prior state, to be settled by Commit or Rollback. It is used as one of database/sql:
//
//	tx, err := session.Begin(ctx, client.TransactionParams{ActionType: "payment", PreState: before, Value: price})
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback(ctx, "not finished")
//	// … act …
//	return tx.Commit(ctx, client.CommitParams{PostState: after})
//
// Begin, Commit and Rollback are each done once however often they are sent. A transaction that nobody settles
// expires, and its hold is released.
type Transaction struct {
	id     string
	caller *caller
	done   atomic.Bool // settled, or being settled, or committed for all we know
	info   atomic.Pointer[TransactionInfo]
}

func openTransaction(c *caller, id string) *Transaction {
	t := &Transaction{id: id, caller: c}
	t.info.Store(&TransactionInfo{ID: id})
	return t
}

// ID is the transaction's id.
func (t *Transaction) ID() string { return t.id }

// Info is what the service said of the transaction last. Nothing is sent.
func (t *Transaction) Info() TransactionInfo { return *t.info.Load() }

// Commit settles the transaction as done. After success, and after [ErrOutcomeUnknown], it is done with: a deferred
// Rollback then does nothing, for what has happened must not be taken out of the books by accident. To settle a
// commit in doubt, call Get or Reverse. After any other error it is pending still, unless that is a *TransactionNotPending.
//
// A commit that comes after the transaction has expired is still taken, and Info says that it was Late: what was spent must
// not be missing from the books. If the action has been taken by then, give Commit a ctx that is not about to end.
func (t *Transaction) Commit(ctx context.Context, p CommitParams) error {
	if !t.done.CompareAndSwap(false, true) {
		return ErrTransactionDone
	}
	body := struct {
		Value     *money.MicroUSD `json:"value_usd,omitzero"`
		PostState any             `json:"post_state,omitzero"`
	}{p.Value, p.PostState}
	err := t.ask(ctx, t.caller.client.keyed(transactionPath(t.id)+"/commit", p.IdempotencyKey, body))
	if err != nil && !errors.Is(err, ErrOutcomeUnknown) && !isSettled(err) {
		t.done.Store(false)
	}
	return err
}

// Rollback settles the transaction as not done and releases its hold; Info has the prior state to restore. The action
// stays counted. After a Commit or Rollback it is [ErrTransactionDone] and sends nothing, so that it may be deferred.
//
// It is sent also when the ctx has ended, and takes 10 seconds at most. An agent may always give back its own hold.
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

// Reverse rolls the transaction back even if it is committed, which Rollback does not; the value is given back to the
// session. For that an agent needs the scope transactions:rollback, or admin, in its token and its session, else it is an
// *InsufficientScope. Further errors are those of Rollback, and *TransactionNotReversible.
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
	return t.ask(ctx, t.caller.client.keyed(transactionPath(t.id)+"/rollback", "", body))
}

// ask sends q, whose answer is the transaction.
func (t *Transaction) ask(ctx context.Context, q call) error {
	var info TransactionInfo
	err := t.caller.do(ctx, q, &info)
	if err == nil {
		t.info.Store(&info)
	}
	return err
}

// isSettled reports whether err says that there is nothing left to settle.
func isSettled(err error) bool {
	var settled *TransactionNotPending
	var forGood *TransactionNotReversible
	return errors.As(err, &settled) || errors.As(err, &forGood)
}
