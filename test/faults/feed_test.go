package faults

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/internal/auditlog"
	"remit/internal/redisproc"
)

// Leaders of a feed are killed, and Redis: every change has its event, in its agent's order, and the chain holds.
func TestAFeedIsCompleteThoughItsLeadersAreKilled(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{Fsync: "always"})
	f := StartFeed(t, FeedSetup{URL: redis.URL(), Agents: 20, Rate: 300})
	f.awaitChanges(100)
	f.KillLeader(0)
	redis.Kill()
	redis.Start()
	f.awaitNewEvent()
	f.StopChanges()
	f.ChangeEach()
	wantFaultsNamed(t, f.Finish())
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
	for !slices.ContainsFunc(f.Events(), func(e FedEvent) bool { return e.Request == request }) {
		if time.Since(began) > RecoveryLimit {
			f.t.Fatalf("the feed has no event of a change %v after its leader was killed", time.Since(began))
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.t.Logf("another instance led within %v", time.Since(began).Round(10*time.Millisecond))
}

// awaitChanges returns when so many more changes were acknowledged.
func (f *Feed) awaitChanges(more int) {
	f.t.Helper()
	want := f.Acknowledged() + more
	for deadline := time.Now().Add(workPatience); f.Acknowledged() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("no %d more changes in %v", more, workPatience)
		}
	}
}

// faultWindow is how many events before and after a fault an export has.
const faultWindow = 500

// wantFaultsNamed changes, drops and swaps events of a correct export, each in its middle, and wants each named.
func wantFaultsNamed(t *testing.T, events []FedEvent) {
	t.Helper()
	if len(events) < 10 {
		t.Fatalf("there are %d events", len(events))
	}
	at := len(events) / 2
	events = events[max(0, at-faultWindow):min(len(events), at+faultWindow)]
	at = min(at, faultWindow)
	for name, edit := range map[string]func(e []FedEvent) []FedEvent{
		"changed": func(e []FedEvent) []FedEvent {
			e[at].Line = strings.Replace(e[at].Line, e[at].Agent, e[at].Agent[1:]+"0", 1)
			return e
		},
		"dropped": func(e []FedEvent) []FedEvent { return slices.Delete(e, at, at+1) },
		"swapped": func(e []FedEvent) []FedEvent {
			e[at], e[at+1] = e[at+1], e[at]
			return e
		},
	} {
		_, err := auditlog.Verify(strings.NewReader(Export(edit(slices.Clone(events)))))
		var broken *auditlog.BrokenError
		if !errors.As(err, &broken) || broken.Sequence != events[at].Sequence {
			t.Errorf("event %d %s: %v", events[at].Sequence, name, err)
		}
	}
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
