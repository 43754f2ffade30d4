package fleet

import (
	"context"
	"net/http"
	"time"

	"remit/client"
)

// start creates a session for the agent of s, and charges it once.
func (f *fleet) start(ctx context.Context, s *session, a action, due time.Time) *recorder {
	if f.started.made.Add(1) > maxStarted {
		return f.read(ctx, s, due)
	}
	var made client.SessionInfo
	t := f.call(ctx, opSession, due, func(ctx context.Context) (err error) {
		made, err = f.org.CreateSession(ctx, client.SessionParams{
			AgentID: s.agent.sdk.ID(), MaxActions: startedLimits.actions, MaxValue: new(startedLimits.value),
			ExpiresIn: sessionLifetime(f.cfg),
		})
		return err
	})
	f.audit.add(checkAccepted(s.agent.sdk.ID(), t.reply()))
	if t.err != nil {
		return t // if it was created all the same, it is empty and unknown to the fleet
	}
	fresh := &session{sdk: s.agent.sdk.Session(made.ID), agent: s.agent, limits: startedLimits}
	f.charge(ctx, fresh, a, time.Now())
	f.started.open <- fresh
	return t
}

// end ends the oldest session created during the run, and checks it against its ledger. If there is none, it reads s.
func (f *fleet) end(ctx context.Context, s *session, due time.Time) *recorder {
	var it *session
	select {
	case it = <-f.started.open:
	default:
		return f.read(ctx, s, due)
	}
	t := f.persist(ctx, opEnd, due, it.sdk.End)
	fact := f.afterEnd(ctx, it, t.reply())
	f.audit.add(checkEnded(fact))
	f.shown.add(fact.after)
	f.started.enter(it.ledger.sums())
	return t
}

// read reads an active session, and checks its state.
func (f *fleet) read(ctx context.Context, s *session, due time.Time) *recorder {
	fact := sessionFact{session: s.sdk.ID(), limits: s.limits}
	fact.window.before = s.ledger.send(effect{})
	t := f.call(ctx, opRead, due, s.get)
	fact.window.possible = s.ledger.possible()
	if r := t.reply(); r.outcome() == unknown {
		f.audit.add(checkUnanswered(fact.session, r))
	} else {
		f.audit.add(checkStored(fact, r, statusActive))
	}
	return t
}

// verify verifies the agent's access token, as a proxy does for each request. The SDK has no call for it.
func (f *fleet) verify(ctx context.Context, a *agent, due time.Time) *recorder {
	var named string
	t := f.call(ctx, opVerify, due, func(ctx context.Context) error {
		access, err := a.sdk.Token(ctx)
		if err != nil {
			return err
		}
		answer, err := f.wire.send(ctx, http.MethodGet, verifyPath+"?scope=read", "", map[string]string{"Authorization": bearer + access})
		if err != nil {
			return err
		}
		named = answer.Header.Get("X-Agent-Id")
		if answer.StatusCode != http.StatusOK {
			return &client.Problem{Status: answer.StatusCode}
		}
		return nil
	})
	f.audit.add(checkAccepted(a.sdk.ID(), t.reply()))
	if t.err == nil && named != a.sdk.ID() {
		f.audit.add([]violation{found(ruleIdentity, a.sdk.ID(), "its token was verified as one of %q", named)})
	}
	return t
}

// exchange exchanges the secret for tokens, as a new process of the agent does, and discards them.
func (f *fleet) exchange(ctx context.Context, a *agent, due time.Time) *recorder {
	t := f.call(ctx, opToken, due, f.remit.Agent(a.sdk.ID(), string(a.secret)).Refresh)
	f.audit.add(checkAccepted(a.sdk.ID(), t.reply()))
	if t.err == nil && !decoded[tokenPair](t.reply().body).usable() {
		f.audit.add([]violation{found(ruleUnreadable, a.sdk.ID(), "token pair is incomplete")})
	}
	return t
}

// listSessions reads the first page of the agent's active sessions.
func (f *fleet) listSessions(ctx context.Context, a *agent, due time.Time) *recorder {
	const enough = 20 // a page has more
	var out []violation
	t := f.call(ctx, opSessions, due, func(ctx context.Context) error {
		n := 0
		for it, err := range a.sdk.Sessions(ctx, client.SessionFilter{Status: statusActive}) {
			if err != nil {
				return err
			}
			if it.AgentID != a.sdk.ID() || it.Status != statusActive {
				out = append(out, found(ruleIdentity, a.sdk.ID(), "its active sessions have one of %s, %s", it.AgentID, it.Status))
			}
			if n++; n == enough {
				break
			}
		}
		return nil
	})
	f.audit.add(append(out, checkAccepted(a.sdk.ID(), t.reply())...))
	return t
}

// checkAccepted checks the answer to a request that the service has no reason to refuse.
func checkAccepted(subject string, r reply) []violation {
	switch r.outcome() {
	case refused:
		return []violation{found(ruleStatus, subject, "refused with %s", r)}
	case unknown:
		return checkUnanswered(subject, r)
	}
	return nil
}
