package main

import (
	"context"
	"time"
)

// storm lets the access tokens of all agents expire at once, half-way through the run. A service does not do so at
// anybody's wish, so the tokens are invalidated on the wire from then on: the service refuses them as it does expired ones,
// and each agent has to refresh before its next call. So that all do so at once, each then reads one of its sessions,
// beside the actions that are due; all these reads are due at the moment of the storm.
func (f *fleet) storm(ctx context.Context) {
	sleepOrDone(ctx, f.cfg.duration/2)
	expired := make(map[string]bool, len(f.agents))
	for _, a := range f.agents {
		// An agent that is just getting a new token has none that could expire.
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
