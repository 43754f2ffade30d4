package main

import (
	"context"
	"time"
)

// charge charges the session for an action, and checks the answer.
func (f *fleet) charge(ctx context.Context, s *session, a action, due time.Time) *recorder {
	fact := actionFact{session: s.sdk.ID(), limits: s.limits, requested: a.requested}
	requested := effect{charge: a.requested}
	fact.before = s.ledger.send(requested)
	t := f.call(ctx, opAction, due, s.does(a))
	fact.reply = t.reply()
	fact.possible = s.ledger.finish(requested, requested, fact.reply)
	f.audit.add(checkAction(fact))
	return t
}
