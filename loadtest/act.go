package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"remit/client"
	"remit/money"
)

const (
	maxInFlight       = 512 // actions under way at once in open loop; more are late and say so
	closedLoopWorkers = 64  // enough to keep a service busy, few enough to leave the latencies a meaning
	refreshers        = 16
	refreshEvery      = time.Minute // and at least once in a run

	// How long a run waits for what was due in time but could not be sent in time.
	minOverrun, maxOverrun = 5 * time.Second, 30 * time.Second
)

// overrun is how long a run may take beyond its duration.
func overrun(cfg config) time.Duration { return min(max(cfg.duration, minOverrun), maxOverrun) }

// act lets the agents act and refresh their tokens until the time is up, and waits for the last answers.
func (f *fleet) act(ctx context.Context) {
	workers := maxInFlight
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
	group.Go(func() {
		drive(ctx, refreshers, renewals, func(k int64, due time.Time) {
			f.refresh(ctx, f.agents[k%int64(len(f.agents))], due)
		})
	})
	group.Go(func() {
		drive(ctx, workers, actions, func(k int64, due time.Time) { f.actOnce(ctx, k, due) })
	})
	if f.cfg.scenario == storm {
		group.Go(func() { f.storm(ctx) })
	}
	group.Wait()
	f.unsent = actions.unsent()
}

// actOnce does action k, which was due at the given moment.
func (f *fleet) actOnce(ctx context.Context, k int64, due time.Time) {
	f.stats.recordLag(time.Since(due))
	t := f.perform(ctx, nthAction(k, f.cfg), due)
	f.stats.recordArrival(due, t.done, t.reply().outcome())
}

// perform does what was due, and returns the tape of its first call.
func (f *fleet) perform(ctx context.Context, a action, due time.Time) *tape {
	s := f.sessions[a.session]
	switch a.task {
	case transacts:
		return f.transact(ctx, s, a, due)
	case batches:
		return f.chargeMany(ctx, s.agent, a, due)
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
	}
	return f.charge(ctx, s, a, due)
}

// charge charges the session for an action, and checks the answer.
func (f *fleet) charge(ctx context.Context, s *session, a action, due time.Time) *tape {
	fact := actionFact{session: s.sdk.ID(), limits: s.limits, asked: a.asked}
	asked := effect{charge: a.asked}
	fact.before = s.ledger.send(asked)
	t := f.call(ctx, opAction, due, s.does(a))
	fact.reply = t.reply()
	fact.possible = s.ledger.settle(asked, asked, fact.reply)
	f.audit.add(checkAction(fact))
	return t
}

// does is the SDK's call for an action on the session.
func (s *session) does(a action) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.sdk.Charge(ctx, client.Charge{ActionType: a.kind, Value: money.MicroUSD(a.asked.value), Count: a.asked.count})
		return err
	}
}

// refresh lets the agent refresh its tokens. When the answer is lost the SDK presents the same token again, at once and
// if need be next time: the service promises the same successor then. When the token is refused the SDK falls back to
// the secret; that it was refused is on the tape.
func (f *fleet) refresh(ctx context.Context, a *agent, due time.Time) *tape {
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

// presentedIn is the refresh token in the body of a request.
func presentedIn(body []byte) string {
	var asked struct {
		RefreshToken string `json:"refresh_token"`
	}
	// A body that cannot be read presented nothing, which no answer follows.
	_ = json.Unmarshal(body, &asked)
	return asked.RefreshToken
}
