package faults

import (
	"fmt"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// changersOfAgent is how many changes of an agent are under way at the most. Those of agents on a server that is down wait; the
	// others take the turns meanwhile.
	changersOfAgent = 4
	// lateTurns is for how long turns are kept when no changer takes them. What a longer stop delayed is not made up for.
	lateTurns = 2 * time.Second
	// leastPause and mostPause are between a change that was not acknowledged and the next one.
	leastPause = 10 * time.Millisecond
	mostPause  = 16 * leastPause
)

// startChanges starts the changers of each agent. They take turns at the rate that is asked for, whichever of them is free.
func (f *Feed) startChanges() {
	kept := max(1, int(float64(f.setup.Rate)*lateTurns.Seconds()))
	turns := rate.NewLimiter(rate.Limit(f.setup.Rate), kept)
	f.began = time.Now()
	turns.AllowN(f.began, kept) // none is late yet
	for i := range f.agents {
		for n := range changersOfAgent {
			f.workers.Go(func() { f.change(turns, i, n) })
		}
	}
}

// change changes an agent once in each turn, through the instances in turn. What one does not acknowledge it asks of the other one anew,
// as another change.
func (f *Feed) change(turns *rate.Limiter, agent, n int) {
	for i := 0; turns.Wait(f.working) == nil; i++ {
		pause := leastPause
		for tries := 0; !f.changeOnce(f.urls[(n+i+tries)%2], f.agents[agent], fmt.Sprintf("%d-%d-%d-%d", agent, n, i, tries), i%8 == 7); tries++ {
			select {
			case <-f.working.Done():
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, mostPause)
		}
	}
}

// changeOnce changes an agent, or creates a session of it, and notes that if it is acknowledged. Either leaves an event.
func (f *Feed) changeOnce(instance, agent, request string, session bool) bool {
	method, path, body, what := http.MethodPatch, "/v1/agents/"+agent, object{"description": request}, "agent.changed"
	if session {
		method, path, what = http.MethodPost, "/sessions", "session.created"
		body = object{"agent_id": agent, "max_actions": 10, "max_value_usd": 1, "expires_in_seconds": 3600}
	}
	status, answer, err := f.do(instance, method, path, request, body)
	ended := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.refused["no answer"]++
	case status >= 300:
		f.refused[fmt.Sprintf("%d %s", status, problemCode(status, answer))]++
	default:
		f.changes = append(f.changes, Change{request, agent, what, ended})
		return true
	}
	return false
}

// ChangeEach changes each agent once more, when the changers have ended, so that no follower waits for what a killed instance left.
func (f *Feed) ChangeEach() {
	f.t.Helper()
	for i, agent := range f.agents {
		n := 0
		waitEvery(f.t, 20*time.Millisecond, workPatience, "each agent is changed", func() bool {
			n++
			return f.changeOnce(f.urls[i%2], agent, fmt.Sprintf("last-%d-%d", i, n), false)
		})
	}
}

// StopChanges returns when the changers have ended.
func (f *Feed) StopChanges() {
	if f.working.Err() == nil {
		f.ended = time.Now()
	}
	f.stop()
	f.workers.Wait()
}

// Acknowledged returns how many changes were acknowledged.
func (f *Feed) Acknowledged() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.changes)
}

// Rate returns how many changes were acknowledged in a second of that time.
func (f *Feed) Rate(since, until time.Time) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.changes {
		if !c.Ended.Before(since) && c.Ended.Before(until) {
			n++
		}
	}
	return float64(n) / until.Sub(since).Seconds()
}
