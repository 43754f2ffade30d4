package fleet

import (
	"context"
	"time"
)

// storm makes the access tokens of all agents expire at once, half-way through the run. A client cannot make the service do
// that, so the transport invalidates the tokens from then on: the service refuses them like expired ones, and each agent
// must refresh before its next call. Each agent also reads one of its sessions at that time, in addition to the actions that
// are due, so that all of them refresh at once.
func (f *fleet) storm(ctx context.Context) {
	sleepOrDone(ctx, f.cfg.duration/2)
	expired := make(map[string]bool, len(f.agents))
	for _, a := range f.agents {
		// An agent that is fetching a new token has none that could expire.
		if access, err := a.sdk.Token(ctx); err == nil {
			expired[access] = true
		}
	}
	if ctx.Err() != nil {
		return
	}
	f.wire.expire(expired)
	at := time.Now()
	f.stats.stormAt = at
	f.stats.timeline.offer(at, int64(len(f.agents)))
	drive(ctx, maxInFlight, newPacer(int64(len(f.agents)), 0, 0), func(i int64, _ time.Time) {
		t := f.read(ctx, f.sessions[i], at) // the first sessions belong to one agent each
		f.stats.recordArrival(at, t.done, t.reply().outcome())
	})
}
