package main

import (
	"context"
	"time"

	"remit/client"
)

// transactInTree begins a transaction on a session of a tree, and commits it or rolls it back as drawn. Another worker may end the
// session meanwhile, which rolls it back.
func (f *fleet) transactInTree(ctx context.Context, n *node, a action, due time.Time) *recorder {
	requested := effect{charge{count: 1}, flow{begun: 1, held: a.requested.value}}
	before := n.send(requested)
	var tx *client.Transaction
	t := f.call(ctx, opBegin, due, func(ctx context.Context) (err error) {
		tx, err = n.sdk.Begin(ctx, client.TransactionParams{
			ActionType: a.kind, PreState: preState, Value: a.requested.value, ExpiresIn: transactionLifetime,
		})
		return err
	})
	n.ledger.finish(requested, requested, t.reply())
	f.audit.add(checkNodeBegin(n.judged(nodeFact{requested: charge{1, a.requested.value}, reply: t.reply()}, before)))
	switch {
	case tx == nil || a.ending == leftPending:
	case a.ending == rolledBack:
		f.settleInTree(ctx, n, opRollback, flow{freed: a.requested.value}, func(ctx context.Context) error { return tx.Rollback(ctx, "not done") })
	default:
		f.settleInTree(ctx, n, opCommit, flow{committed: 1, freed: a.requested.value, spent: a.cost, over: a.cost}, func(ctx context.Context) error {
			return tx.Commit(ctx, client.CommitParams{Value: new(a.cost), PostState: preState})
		})
	}
	return t
}

// settleInTree commits or rolls back a transaction, with at most that effect.
func (f *fleet) settleInTree(ctx context.Context, n *node, op operation, most flow, do func(context.Context) error) {
	requested := effect{flow: most}
	before := n.send(requested)
	t := f.call(ctx, op, time.Now(), do)
	did := requested
	if answer, err := readTransaction(t.reply()); err == nil && op == opCommit {
		did.spent, did.over = answer.Value, answer.Overage
	}
	n.ledger.finish(requested, did, t.reply())
	f.audit.add(checkNodeSettled(n.judged(nodeFact{requested: charge{value: most.spent}, reply: t.reply()}, before)))
}
