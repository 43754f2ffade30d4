package fleet

import (
	"context"
	"time"

	"remit/client"
)

// reconcile ends every session, and compares it and its transactions with its ledger. Before that each agent refreshes once
// more, with the successor of a token spent during the run, and uses the new tokens from then on. An agent that could not
// refresh during the run refreshes twice here. Leases are closed first. The usage reports come last.
func (f *fleet) reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reconcilePatience)
	defer cancel()
	if f.cfg.session != "" {
		f.reconcileGiven(ctx, f.sessions[0])
		return nil
	}
	err := each(ctx, len(f.agents), func(ctx context.Context, i int) error {
		a := f.agents[i]
		for attempt := 0; attempt == 0 || (attempt < attempts && a.refreshes < 2); attempt++ {
			f.refresh(ctx, a, time.Now())
		}
		f.audit.add(checkAgent(a.sdk.ID(), a.refreshes))
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if f.cfg.scenario == trees {
		return f.reconcileTrees(ctx)
	}
	if err := f.closeLeases(ctx); err != nil {
		return err
	}
	for len(f.started.open) > 0 {
		f.sessions = append(f.sessions, <-f.started.open)
	}
	err = each(ctx, len(f.sessions), func(ctx context.Context, i int) error {
		closed := f.close(ctx, f.sessions[i])
		f.audit.add(checkSession(closed))
		f.audit.add(checkTransactions(f.list(ctx, f.sessions[i], closed)))
		f.reconcileUsage(ctx, f.sessions[i], closed)
		return ctx.Err()
	})
	if err == nil {
		f.reconcileReport(ctx)
	}
	return err
}

// close reads a session, ends it, reads it again and tries to act on it. All of these may be repeated: ending a session is
// idempotent, and no late action may succeed.
func (f *fleet) close(ctx context.Context, s *session) sessionFact {
	before := f.persist(ctx, opRead, time.Now(), s.get).reply()
	closed := f.afterEnd(ctx, s, f.persist(ctx, opEnd, time.Now(), s.sdk.End).reply())
	closed.before = before
	return closed
}

// afterEnd reads a session whose end was answered so, and tries to act on it.
func (f *fleet) afterEnd(ctx context.Context, s *session, end reply) sessionFact {
	return sessionFact{
		session: s.sdk.ID(), limits: s.limits, window: s.ledger.sums().window(),
		end:   end,
		after: f.persist(ctx, opRead, time.Now(), s.get).reply(),
		late:  f.persist(ctx, opLate, time.Now(), s.does(lateAction)).reply(),
	}
}

// list reads the transactions of an ended session, page by page.
func (f *fleet) list(ctx context.Context, s *session, closed sessionFact) transactionsFact {
	fact := transactionsFact{session: closed.session, window: closed.window, after: closed.after}
	t := f.persist(ctx, opList, time.Now(), func(ctx context.Context) error {
		fact.transactionList = transactionList{}
		for t, err := range s.agent.sdk.Transactions(ctx, client.TransactionFilter{SessionID: closed.session}) {
			if err != nil {
				return err
			}
			fact.enter(t)
		}
		return nil
	})
	fact.err = t.err
	return fact
}
