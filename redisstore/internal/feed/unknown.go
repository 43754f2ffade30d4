package feed

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// unknownCalls remembers the agents that calls may have changed without this instance knowing: a call whose outcome is unknown
// may run later, and an agent's organization may have to be asked for. One goroutine marks them, however many there are.
type unknownCalls struct {
	mu     sync.Mutex
	agents map[uuid.UUID]unknownCall
	added  chan struct{}
}

// unknownCall is the last of such calls on an agent.
type unknownCall struct {
	organization uuid.UUID // uuid.Nil until Redis has been asked
	keys         []string  // of the call, for that
	since        time.Time // when this instance stopped waiting for it
	marked       int       // how many of the markPauses are over
	mayRun       bool      // it may still run; the others are marked once
}

// maxUnknownCalls bounds the agents that are remembered. What is beyond it waits for the next look at all agents.
const maxUnknownCalls = 1 << 14

// markPauses are when an agent is marked after a call whose outcome is unknown.
var markPauses = []time.Duration{0, time.Second, 10 * time.Second, ArrivalTime}

func newUnknownCalls() *unknownCalls {
	return &unknownCalls{agents: map[uuid.UUID]unknownCall{}, added: make(chan struct{}, 1)}
}

// add remembers a call on an agent. A call that may still run keeps being one when another follows.
func (u *unknownCalls) add(agent uuid.UUID, call unknownCall) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.agents[agent]
	if !known && len(u.agents) >= maxUnknownCalls {
		return
	}
	if before.mayRun && !call.mayRun {
		call.mayRun, call.since, call.marked = true, before.since, before.marked
	}
	u.agents[agent] = call
	select {
	case u.added <- struct{}{}:
	default:
	}
}

// due returns the calls to mark now.
func (u *unknownCalls) due(now time.Time) map[uuid.UUID]unknownCall {
	u.mu.Lock()
	defer u.mu.Unlock()
	due := map[uuid.UUID]unknownCall{}
	for agent, call := range u.agents {
		if !call.at().After(now) {
			due[agent] = call
		}
	}
	return due
}

// pause returns the time until the next call is due, at least RetryAfter and at most ArrivalTime.
func (u *unknownCalls) pause(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	pause := ArrivalTime
	for _, call := range u.agents {
		pause = min(pause, call.at().Sub(now))
	}
	return max(pause, RetryAfter)
}

// at is when the agent is marked next.
func (c unknownCall) at() time.Time { return c.since.Add(markPauses[c.marked]) }

// replace keeps what became of a call, unless another call on its agent came meanwhile.
func (u *unknownCalls) replace(agent uuid.UUID, before, after unknownCall) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := u.agents[agent]; !now.since.Equal(before.since) || now.mayRun != before.mayRun {
		return
	}
	if !after.mayRun || after.marked == len(markPauses) {
		delete(u.agents, agent)
		return
	}
	u.agents[agent] = after
}

// markUnknownCalls marks agents when they are due, until the store is closed.
func (d *Feeds) markUnknownCalls() {
	for d.ctx.Err() == nil {
		d.markDue(d.unknown.due(d.Now()))
		timer := time.NewTimer(d.unknown.pause(d.Now()))
		select {
		case <-timer.C:
		case <-d.unknown.added:
		case <-d.ctx.Done():
		}
		timer.Stop()
	}
	d.keepUnknown()
}

// markDue marks these agents. Once Redis has failed to say what the organization of one is, it is asked for no other.
func (d *Feeds) markDue(due map[uuid.UUID]unknownCall) {
	answers := true
	again := map[uuid.UUID][]uuid.UUID{} // agents that have been marked, by organization
	for agent, call := range due {
		after := call
		if after.organization == uuid.Nil && answers {
			var err error
			after.organization, err = d.ownerOf(agent, call.keys)
			answers = err == nil
		}
		switch {
		case after.organization != uuid.Nil && call.marked > 0:
			again[after.organization] = append(again[after.organization], agent)
			after.marked++
		case after.organization != uuid.Nil:
			d.Mark(after.organization, agent)
			after.marked++
		case answers || d.Now().Sub(call.since) >= ArrivalTime: // it has none, or Redis has been away for long
			after.mayRun = false
		default:
			continue
		}
		d.unknown.replace(agent, call, after)
	}
	for organization, agents := range again {
		d.markBehind(organization, agents)
	}
}

// markBehind marks those of the agents that have events which the feed has not: most calls of unknown outcome never run later.
func (d *Feeds) markBehind(organization uuid.UUID, agents []uuid.UUID) {
	for some := range slices.Chunk(agents, lookedAtOnce) {
		behind, err := d.behind(d.ctx, organization, some)
		if err != nil {
			behind = some
		}
		for _, agent := range behind {
			d.Mark(organization, agent)
		}
	}
}

// keepUnknown notes that calls may still run in these organizations: this instance will not see the end of them.
func (d *Feeds) keepUnknown() {
	d.unknown.mu.Lock()
	defer d.unknown.mu.Unlock()
	for _, call := range d.unknown.agents {
		if call.mayRun && call.organization != uuid.Nil {
			d.Of(call.organization).unsettled.Store(true)
		}
	}
}
