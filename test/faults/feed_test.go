package faults

import (
	"slices"
	"testing"
	"time"

	"remit/internal/redisproc"
)

// Leaders of a feed are killed, and Redis: every change has its event, in its agent's order, and the chain holds.
func TestAFeedIsCompleteThoughItsLeadersAreKilled(t *testing.T) {
	t.Parallel()
	redis := StartRedis(t, redisproc.Config{Fsync: "always"})
	f := StartFeed(t, FeedSetup{URL: redis.URL(), Agents: 20, Rate: 300})
	f.awaitChanges(100)
	f.KillLeader(0)
	redis.Kill()
	redis.Start()
	f.awaitNewEvent()
	f.StopChanges()
	f.ChangeEach()
	f.Finish()
}

// awaitNewEvent returns when the feed has an event of a change that began after the call, which must be soon.
func (f *Feed) awaitNewEvent() {
	f.t.Helper()
	began := time.Now()
	underWay := changersOfAgent * len(f.agents)
	last := f.Acknowledged() + underWay
	f.awaitChanges(underWay + 1)
	f.mu.Lock()
	request := f.changes[last].Request
	f.mu.Unlock()
	waitUntil(f.t, RecoveryLimit-time.Since(began), "the feed has the event of a change", func() bool {
		return slices.ContainsFunc(f.Events(), func(e FedEvent) bool { return e.Request == request })
	})
	f.t.Logf("another instance led within %v", time.Since(began).Round(10*time.Millisecond))
}

func (f *Feed) awaitChanges(more int) {
	f.t.Helper()
	want := f.Acknowledged() + more
	waitUntil(f.t, workPatience, "more changes are acknowledged", func() bool { return f.Acknowledged() >= want })
}

func TestWhatIsWrongWithAFeedIsFound(t *testing.T) {
	t.Parallel()
	changes := []Change{{Request: "r1", Agent: "a", Type: "agent.changed"}, {Request: "r2", Agent: "b", Type: "agent.changed"}}
	trails := map[string][]string{"a": {"1-0", "2-0"}, "b": {"1-0"}}
	event := func(sequence int64, agent, id, request, what string) FedEvent {
		return FedEvent{ID: agent + ":" + id, Type: what, Agent: agent, Request: request, Sequence: sequence}
	}
	correct := []FedEvent{
		event(1, "a", "1-0", "r0", "agent.created"), event(2, "b", "1-0", "r2", "agent.changed"), event(3, "a", "2-0", "r1", "agent.changed"),
	}
	if faults := checkFeed(changes, correct, trails); len(faults) > 0 {
		t.Errorf("a correct feed: %v", faults)
	}
	for name, edit := range map[string]func(e []FedEvent) []FedEvent{
		"nothing":            func([]FedEvent) []FedEvent { return nil },
		"the last missing":   func(e []FedEvent) []FedEvent { return e[:2] },
		"one missing":        func(e []FedEvent) []FedEvent { return slices.Delete(e, 1, 2) },
		"one twice":          func(e []FedEvent) []FedEvent { return append(e, e[2]) },
		"out of order":       func(e []FedEvent) []FedEvent { e[0].ID, e[2].ID = e[2].ID, e[0].ID; return e },
		"of another agent":   func(e []FedEvent) []FedEvent { e[2].Agent = "b"; return e },
		"of another type":    func(e []FedEvent) []FedEvent { e[1].Type = "agent.revoked"; return e },
		"a gap":              func(e []FedEvent) []FedEvent { e[2].Sequence = 4; return e },
		"for no change":      func(e []FedEvent) []FedEvent { e[1].Request = "r9"; return e },
		"twice for a change": func(e []FedEvent) []FedEvent { e[0].Request = "r1"; return e },
	} {
		if faults := checkFeed(changes, edit(slices.Clone(correct)), trails); len(faults) == 0 {
			t.Errorf("%s: no fault is found", name)
		}
	}
}
