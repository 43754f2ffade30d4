package main

import (
	"context"
	"time"

	"remit/client"
)

// transact begins a transaction that was due at the given time, and ends it at once as drawn. It checks each step's answer.
// Whether the steps add up is checked at the end of the session.
func (f *fleet) transact(ctx context.Context, s *session, a action, due time.Time) *recorder {
	requested := effect{charge{count: 1}, flow{begun: 1, held: a.requested.value}}
	fact := stepFact{session: s.sdk.ID(), limits: s.limits, hold: a.requested.value}
	var tx *client.Transaction
	fact.before = s.ledger.send(requested)
	t := f.call(ctx, opBegin, due, func(ctx context.Context) (err error) {
		tx, err = s.sdk.Begin(ctx, client.TransactionParams{
			ActionType: a.kind, PreState: preState, Value: a.requested.value, ExpiresIn: transactionLifetime,
		})
		return err
	})
	fact.reply = t.reply()
	did := requested
	if answer, err := readTransaction(fact.reply); err == nil {
		did.numbers = answer.Sequence
	}
	fact.possible = s.ledger.finish(requested, did, fact.reply)
	f.audit.add(checkBegin(fact))
	if tx == nil {
		return t
	}
	fact.transaction = tx.ID()
	switch a.ending {
	case leftPending:
	case rolledBack:
		f.rollBack(ctx, s, tx, fact, flow{freed: fact.hold})
	default:
		fact.requested = a.cost
		did, ok := f.commit(ctx, s, tx, fact)
		if ok && a.ending == undone {
			f.rollBack(ctx, s, tx, fact, flow{undone: 1, returned: did.spent, overReturned: did.over})
		}
	}
	return t
}

// commit commits a transaction, and returns the effect if it was acknowledged.
func (f *fleet) commit(ctx context.Context, s *session, tx *client.Transaction, fact stepFact) (did effect, ok bool) {
	requested := effect{flow: flow{committed: 1, freed: fact.hold, spent: fact.requested, over: max(fact.requested-fact.hold, 0)}}
	fact.before = s.ledger.send(requested)
	t := f.call(ctx, opCommit, time.Now(), func(ctx context.Context) error {
		return tx.Commit(ctx, client.CommitParams{Value: new(fact.requested), PostState: preState})
	})
	fact.reply = t.reply()
	did = requested
	if answer, err := readTransaction(fact.reply); err == nil {
		did.spent, did.over = answer.Value, answer.Overage
	}
	fact.possible = s.ledger.finish(requested, did, fact.reply)
	f.audit.add(checkCommit(fact))
	return did, fact.reply.outcome() == acknowledged
}

// rollBack rolls a transaction back, or undoes a committed one, with the given effect.
func (f *fleet) rollBack(ctx context.Context, s *session, tx *client.Transaction, fact stepFact, does flow) {
	requested := effect{flow: does}
	fact.before = s.ledger.send(requested)
	t := f.call(ctx, opRollback, time.Now(), func(ctx context.Context) error {
		if does.undone > 0 {
			return tx.Reverse(ctx, "undone")
		}
		return tx.Rollback(ctx, "not done")
	})
	fact.reply = t.reply()
	fact.possible = s.ledger.finish(requested, requested, fact.reply)
	f.audit.add(checkRollback(fact))
}

// preState is the small state that every transaction carries.
var preState = map[string]int{"balance": 100}
