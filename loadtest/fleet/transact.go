package fleet

import (
	"context"
	"time"

	"remit/client"
)

// transact begins a transaction that was due at the given time, and ends it at once as drawn. It checks each step's answer.
// Whether the steps add up is checked at the end of the session. In a tree another worker may end the session meanwhile, which
// rolls the transaction back.
func (f *fleet) transact(ctx context.Context, s *session, a action, due time.Time) *recorder {
	did := effect{charge{count: 1}, flow{begun: 1, held: a.requested.value}}
	known := s.send(did)
	var tx *client.Transaction
	t := f.call(ctx, opBegin, due, func(ctx context.Context) (err error) {
		tx, err = s.sdk.Begin(ctx, client.TransactionParams{
			ActionType: a.kind, PreState: preState, Value: a.requested.value, ExpiresIn: transactionLifetime,
		})
		return err
	})
	if answer, err := readTransaction(t.reply()); err == nil {
		did.numbers = answer.Sequence
	}
	f.audit.add(checkBegin(s.finish(known, did, t.reply())))
	if tx == nil {
		return t
	}
	hold := a.requested.value
	switch a.ending {
	case leftPending:
	case rolledBack:
		f.rollBack(ctx, s, tx, flow{freed: hold})
	default:
		did, ok := f.settle(ctx, s, tx, opCommit, flow{committed: 1, freed: hold, spent: a.cost, over: max(a.cost-hold, 0)}, func(ctx context.Context) error {
			return tx.Commit(ctx, client.CommitParams{Value: &a.cost, PostState: preState})
		})
		if ok && a.ending == undone && s.node == nil {
			f.rollBack(ctx, s, tx, flow{undone: 1, returned: did.spent, overReturned: did.over})
		}
	}
	return t
}

// rollBack rolls a transaction back, or undoes a committed one, with the given effect.
func (f *fleet) rollBack(ctx context.Context, s *session, tx *client.Transaction, does flow) {
	f.settle(ctx, s, tx, opRollback, does, func(ctx context.Context) error {
		if does.undone > 0 {
			return tx.Reverse(ctx, "undone")
		}
		return tx.Rollback(ctx, "not done")
	})
}

// settle commits a transaction or rolls it back, with at most that effect. It returns the effect if it was acknowledged.
func (f *fleet) settle(ctx context.Context, s *session, tx *client.Transaction, op operation, most flow, do func(context.Context) error) (did effect, ok bool) {
	known := s.send(effect{flow: most})
	t := f.call(ctx, op, time.Now(), do)
	did = known.requested
	if answer, err := readTransaction(t.reply()); err == nil && op == opCommit {
		did.spent, did.over = answer.Value, answer.Overage
	}
	settled := s.finish(known, did, t.reply())
	settled.transaction = tx.ID()
	if op == opCommit {
		f.audit.add(checkCommit(settled))
	} else {
		f.audit.add(checkRollback(settled))
	}
	return did, settled.reply.outcome() == acknowledged
}

// preState is the small state that every transaction carries.
var preState = map[string]int{"balance": 100}
