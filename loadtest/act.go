package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	maxInFlight       = 512 // actions under way at once in open loop; more are late and say so
	closedLoopWorkers = 64  // enough to keep a service busy, few enough to leave the latencies a meaning
	refreshers        = 16
	refreshEvery      = time.Minute      // and at least once in a run
	maxOverrun        = 30 * time.Second // wait for what was due in time but could not be sent in time
)

// overrun is how long a run may take beyond its duration.
func overrun(cfg config) time.Duration { return min(cfg.duration, maxOverrun) }

// act lets the agents act and refresh their tokens until the time is up, and waits for the last answers.
func (f *fleet) act(ctx context.Context) {
	workers := maxInFlight
	if f.cfg.rate == 0 {
		workers = closedLoopWorkers
	}
	rounds := 1 + int64(f.cfg.duration/refreshEvery)
	refreshes := newPacer(rounds*int64(len(f.agents)), f.cfg.duration, f.cfg.duration+overrun(f.cfg))
	actions := newActionPacer(f.cfg.rate, f.cfg.duration, overrun(f.cfg))

	var group sync.WaitGroup
	group.Go(func() {
		drive(ctx, refreshers, refreshes, func(k int64, due time.Time) {
			f.refresh(ctx, f.agents[k%int64(len(f.agents))], due)
		})
	})
	group.Go(func() { drive(ctx, workers, actions, f.actOnce) })
	group.Wait()
	f.unsent = actions.unsent()
}

// actOnce does action k, which was due at the given moment, and checks its answer.
func (f *fleet) actOnce(k int64, due time.Time) {
	a := nthAction(k, len(f.sessions))
	s := f.sessions[a.session]
	f.stats.recordLag(time.Since(due))
	floor := s.ledger.send(a.asked)
	r := f.call(opAction, due, s.action(a.body()))
	ceiling := s.ledger.settle(a.asked, r)
	f.audit.add(checkAction(actionFact{
		session: s.id, limits: s.limits, asked: a.asked, reply: r, floor: floor, ceiling: ceiling,
	}))
}

// action is a request to act on the session, with the newest access token of its agent.
func (s *session) action(body []byte) request {
	return request{method: "POST", path: "/sessions/" + s.id + "/actions", auth: *s.agent.auth.Load(), body: body}
}

// refresh exchanges the agent's refresh token for a new pair. When the answer is lost the same token is presented
// again, at once and if need be next time: the service promises the same successor then.
func (f *fleet) refresh(ctx context.Context, a *agent, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	fact := refreshFact{agent: a.id, presented: a.tokens}
	if !a.doubt.IsZero() {
		fact.doubt = began.Sub(a.doubt)
	}
	body := fmt.Appendf(nil, `{"refresh_token":%q}`, a.tokens.RefreshToken)
	fact.reply = f.persist(ctx, opRefresh, due, request{method: "POST", path: "/v1/auth/refresh", body: body})
	broken := checkRefresh(fact)
	f.audit.add(broken)
	switch o := fact.reply.outcome(); {
	case o == acknowledged && len(broken) == 0:
		a.hold(readTokens(fact.reply))
		a.refreshes++
	case o == unknown && a.doubt.IsZero():
		a.doubt = began
	}
}
