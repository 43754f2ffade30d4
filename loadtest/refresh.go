package main

import (
	"context"
	"time"
)

// refresh lets the agent refresh its tokens. When the answer is lost the SDK presents the same token again, at once and
// if need be next time: the service promises the same successor then. When the token is refused the SDK falls back to
// the secret; that it was refused is on the tape.
func (f *fleet) refresh(ctx context.Context, a *agent, due time.Time) *recorder {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	t := f.persist(ctx, opRefresh, due, a.sdk.Refresh)
	if e, ok := t.last(refreshPath); ok {
		fact := refreshFact{agent: a.sdk.ID(), presented: a.tokens, reply: e.reply}
		fact.presented.RefreshToken = presentedIn(e.sent)
		if !a.doubt.IsZero() {
			fact.doubt = began.Sub(a.doubt)
		}
		broken := checkRefresh(fact)
		f.audit.add(broken)
		switch o := e.reply.outcome(); {
		case o == acknowledged && len(broken) == 0:
			a.take(readTokens(e.reply))
			a.refreshes++
		case o == unknown && a.doubt.IsZero():
			a.doubt = began
		}
	}
	if e, ok := t.last(tokenPath); ok && e.reply.outcome() == acknowledged {
		a.take(readTokens(e.reply))
	}
	return t
}
