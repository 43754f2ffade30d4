package main

import (
	"context"
	"time"
)

const settlePatience = 5 * time.Minute

// lateAction is what is asked of a session that has ended.
var lateAction = action{kind: actionTypes[0], asked: charge{count: 1}}

// settle ends every session and checks it against its ledger. Before that each agent refreshes once more, with the
// successor of a token that was spent during the run, and the rest is done with what that returns. If it could not
// refresh during the run, it does so twice here.
func (f *fleet) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	err := each(ctx, len(f.agents), func(ctx context.Context, i int) error {
		a := f.agents[i]
		for attempt := 0; attempt == 0 || (attempt < attempts && a.refreshes < 2); attempt++ {
			f.refresh(ctx, a, time.Now())
		}
		f.audit.add(checkAgent(a.id, a.refreshes))
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return each(ctx, len(f.sessions), func(ctx context.Context, i int) error {
		f.audit.add(checkSession(f.close(ctx, f.sessions[i])))
		return ctx.Err()
	})
}

// close reads a session, ends it, reads it again and tries to act on it. All of that may be asked twice: a session
// that has ended answers the same to a second end, and no late action may succeed.
func (f *fleet) close(ctx context.Context, s *session) sessionFact {
	sums, path, auth := s.ledger.sums(), "/sessions/"+s.id, *s.agent.auth.Load()
	ask := func(op operation, q request) reply { return f.persist(ctx, op, time.Now(), q) }
	return sessionFact{
		session:      s.id,
		limits:       s.limits,
		acknowledged: sums.acknowledged.charge,
		unknown:      sums.unknown.charge,
		before:       ask(opRead, request{method: "GET", path: path, auth: auth}),
		end:          ask(opEnd, request{method: "POST", path: path + "/end", auth: auth}),
		after:        ask(opRead, request{method: "GET", path: path, auth: auth}),
		late:         ask(opLate, s.action(lateAction.body())),
	}
}
