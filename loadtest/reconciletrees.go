package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// closePatience is how long after the end of all trees everything that was set aside may take to come back.
const closePatience = time.Minute

// reconcileTrees ends every tree, waits until all sessions are closed, and compares them with their ledgers.
func (f *fleet) reconcileTrees(ctx context.Context) error {
	roots := f.grove.all
	err := each(ctx, len(roots), func(ctx context.Context, i int) error {
		root := roots[i].nodes[0]
		if len(roots[i].live()) > 0 {
			at := f.asks(ctx, opTree, time.Now(), http.MethodGet, sessionsPath+"/"+root.sdk.ID()+"/tree", "")
			f.audit.add(checkTreeAtRest(root.sdk.ID(), at.reply()))
		}
		f.prune(ctx, root, time.Now())
		late := f.persist(ctx, opLate, time.Now(), root.does(lateAction)).reply()
		f.audit.add(checkLate(sessionFact{session: root.sdk.ID(), late: late}))
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	budget, err := f.awaitClosed(ctx)
	if err != nil {
		return err
	}
	closed, err := f.readClosed(ctx)
	f.audit.add(checkGrove(closed, budget))
	return err
}

// awaitClosed waits until nothing is reserved any more, and returns the budget. Usually that is so at once. What an end could not
// settle comes back when a request needs it, and one of more than the budget has needs all.
func (f *fleet) awaitClosed(ctx context.Context) (reply, error) {
	for began := time.Now(); ; sleepOrDone(ctx, betweenAttempt) {
		r := f.asks(ctx, opBudget, time.Now(), http.MethodGet, budgetPath, "").reply()
		b, err := readBudget(r)
		if r.outcome() == acknowledged && (err != nil || b.Reserved == 0) || time.Since(began) > f.cfg.patience || ctx.Err() != nil {
			return r, ctx.Err()
		}
		f.asks(ctx, opSession, time.Now(), http.MethodPost, sessionsPath, fmt.Sprintf(
			`{"agent_id":%q,"max_actions":1,"max_value_usd":%s}`, f.agents[0].sdk.ID(), min(f.budget+1, maxSessionValue)))
	}
}

// readClosed reads all sessions of all trees, and makes them the fleet's sessions, for the totals.
func (f *fleet) readClosed(ctx context.Context) ([]closedNode, error) {
	var nodes []*session
	for _, t := range f.grove.all {
		nodes = append(nodes, t.nodes...)
	}
	var mu sync.Mutex
	var closed []closedNode
	err := each(ctx, len(nodes), func(ctx context.Context, i int) error {
		n := nodes[i]
		it := closedNode{session: n.sdk.ID(), window: n.ledger.sums().window(), read: f.persist(ctx, opRead, time.Now(), n.get).reply()}
		if n.parent != nil {
			it.parent = n.parent.sdk.ID()
		}
		mu.Lock()
		defer mu.Unlock()
		closed = append(closed, it)
		f.sessions = append(f.sessions, n)
		return ctx.Err()
	})
	return closed, err
}
