package fleet

import (
	"context"
	"time"
)

// refresh refreshes the agent's tokens. If the answer is lost, the SDK presents the same token again, at once and if
// necessary at the next refresh: the service promises the same successor. If the service refuses the token, the SDK falls
// back to the secret, but the recorder has the refusal.
func (f *fleet) refresh(ctx context.Context, a *agent, due time.Time) *recorder {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	t := f.persist(ctx, opRefresh, due, a.sdk.Refresh)
	if e, ok := t.last(refreshPath); ok {
		fact := refreshFact{agent: a.sdk.ID(), presented: a.tokens, reply: e.reply}
		fact.presented.RefreshToken = decoded[tokenPair](e.sent).RefreshToken
		if !a.doubt.IsZero() {
			fact.doubt = began.Sub(a.doubt)
		}
		broken := checkRefresh(fact)
		f.audit.add(broken)
		switch o := e.reply.outcome(); {
		case o == acknowledged && len(broken) == 0:
			a.take(decoded[tokenPair](e.reply.body))
			a.refreshes++
		case o == unknown && a.doubt.IsZero():
			a.doubt = began
		}
	}
	if e, ok := t.last(tokenPath); ok && e.reply.outcome() == acknowledged {
		a.take(decoded[tokenPair](e.reply.body))
	}
	return t
}
