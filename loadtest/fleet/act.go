package fleet

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// act makes the agents act and refresh their tokens for the duration of the run, and waits for the last answers.
func (f *fleet) act(ctx context.Context) {
	workers := cmp.Or(f.cfg.inFlight, maxInFlight)
	if f.cfg.rate == 0 {
		workers = closedLoopWorkers
	}
	rounds := 1 + int64(f.cfg.duration/refreshEvery)
	renewals := newPacer(rounds*int64(len(f.agents)), f.cfg.duration, f.cfg.duration+overrun(f.cfg))
	actions := newActionPacer(f.cfg.rate, f.cfg.duration, overrun(f.cfg))
	if f.cfg.scenario == burst {
		actions.warp = inBursts
	}
	f.stats.timeline.begin(actions, f.cfg.duration)
	f.stats.acting.Store(true)
	defer f.stats.acting.Store(false)

	var group sync.WaitGroup
	if f.cfg.session == "" { // to whose agent a refresh may be refused
		group.Go(func() {
			drive(ctx, refreshers, renewals, func(k int64, due time.Time) {
				f.refresh(ctx, f.agents[k%int64(len(f.agents))], due)
			})
		})
	}
	group.Go(func() {
		drive(ctx, workers, actions, func(k int64, due time.Time) { f.actOnce(ctx, k, due) })
	})
	if f.cfg.scenario == storm {
		group.Go(func() { f.storm(ctx) })
	}
	group.Wait()
	f.unsent = actions.unsent()
}

// actOnce performs action k, which was due at the given time.
func (f *fleet) actOnce(ctx context.Context, k int64, due time.Time) {
	f.stats.recordLag(time.Since(due))
	t := f.perform(ctx, nthAction(k, f.cfg), due)
	f.stats.recordArrival(due, t.done, t.reply().outcome())
}

// perform performs an action, and returns the recorder of its first call.
func (f *fleet) perform(ctx context.Context, a action, due time.Time) *recorder {
	if f.cfg.scenario == trees {
		return f.inTree(ctx, a, due)
	}
	s := f.sessions[a.session]
	if f.cfg.session != "" {
		a.kind = f.ownType
		return f.charge(context.WithoutCancel(ctx), s, a, due) // what was sent is answered, also when the run is interrupted
	}
	switch a.task {
	case transacts:
		return f.transact(ctx, s, a, due)
	case batches:
		return f.chargeBatch(ctx, s.agent, a, due)
	case reads:
		return f.read(ctx, s, due)
	case verifies:
		return f.verify(ctx, s.agent, due)
	case refreshes:
		return f.refresh(ctx, s.agent, due)
	case exchanges:
		return f.exchange(ctx, s.agent, due)
	case starts:
		return f.start(ctx, s, a, due)
	case ends:
		return f.end(ctx, s, due)
	case lists:
		return f.listSessions(ctx, s.agent, due)
	case leases:
		return f.chargeLease(ctx, s, a, due)
	}
	return f.charge(ctx, s, a, due)
}
