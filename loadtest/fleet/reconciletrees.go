package fleet

import (
	"context"
	"slices"
	"time"
)

// closePatience is how long after the end of all trees everything that was set aside may take to come back.
const closePatience = time.Minute

// reconcileTrees ends every tree, waits until all sessions are closed, and compares them with their ledgers.
func (f *fleet) reconcileTrees(ctx context.Context) error {
	roots := f.grove.all
	err := each(ctx, len(roots), func(ctx context.Context, i int) error {
		root := roots[i].root()
		if len(root.live()) > 0 {
			at := f.asks(ctx, opTree, time.Now(), treeOf(root))
			f.audit.add(checkTreeAtRest(root.sdk.ID(), at.reply()))
		}
		f.prune(ctx, root, false, time.Now())
		late := f.persist(ctx, opLate, time.Now(), root.does(lateAction)).reply()
		f.audit.add(checkLate(sessionFact{session: root.sdk.ID(), late: late}))
		return ctx.Err()
	})
	if err == nil && f.cfg.breaking {
		f.needBudget(ctx)
	}
	if err == nil {
		err = f.checkClosed(ctx)
	}
	return err
}

// checkClosed checks all trees once nothing is set aside any more. Usually that is so at once. What an end could not settle comes back
// when a request needs it, and one of more than the budget has needs all.
func (f *fleet) checkClosed(ctx context.Context) error {
	for began := time.Now(); ; sleepOrDone(ctx, betweenAttempt) {
		budget := f.asks(ctx, opBudget, time.Now(), readsBudget).reply()
		closed, err := f.readClosed(ctx)
		if err != nil {
			return err
		}
		broken := checkGrove(closed, budget)
		unsettled := slices.ContainsFunc(broken, func(v violation) bool { return v.rule == rulePart || v.rule == ruleEnd })
		if !unsettled || time.Since(began) > f.cfg.patience {
			f.audit.add(broken)
			return nil
		}
		f.asks(ctx, opSession, time.Now(), f.rootOf(f.agents[0], limits{1, min(f.budgetNow()+1, maxSessionValue)}))
	}
}

// readClosed reads all sessions of all trees, and makes them the fleet's sessions, for the totals.
func (f *fleet) readClosed(ctx context.Context) ([]closedNode, error) {
	f.sessions = nil
	for _, t := range f.grove.all {
		f.sessions = append(f.sessions, t.nodes...)
	}
	closed := make([]closedNode, len(f.sessions))
	return closed, each(ctx, len(f.sessions), func(ctx context.Context, i int) error {
		n := f.sessions[i]
		closed[i] = closedNode{session: n.sdk.ID(), window: n.ledger.sums().window(), read: f.persist(ctx, opRead, time.Now(), n.get).reply()}
		if n.parent != nil {
			closed[i].parent = n.parent.sdk.ID()
		}
		return ctx.Err()
	})
}
