package console

import (
	"fmt"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

func TestARefusalIsCountedByItsLimitAndWhatObservesIsNotRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent, b := w.newAgent("scout"), w.as(t, viewer)
	exceed := func(enforcement string) {
		session := w.newSession(agent, map[string]any{"max_actions": 1, "enforcement": enforcement})
		for range 2 {
			w.askAPI("POST", "/v1/sessions/"+session+"/actions", map[string]any{}, "X-API-Key", w.keys[admin])
		}
	}
	exceed("observe")
	w.overviewSays(b, "1 limit would have refused, in a session that observes").saysNot("max_actions")
	exceed("enforce")
	w.overviewSays(b, "max_actions")
}

func TestLimitsReachedAreRememberedForADayAndWithinBounds(t *testing.T) {
	t.Parallel()
	s, at := newStats(), time.Unix(1_800_000_000, 0)
	limit := []byte(`{"limit":"max_actions"}`)
	for i := range mostReached + 5 {
		s.count(eventRow{Type: "session.limit_reached", OccurredAt: at, SessionID: fmt.Sprint(i), Data: limit})
	}
	s.count(eventRow{Type: wouldRefuse, OccurredAt: at.Add(2 * time.Hour), SessionID: "0", Data: limit})
	s.count(eventRow{Type: "session.limit_reached", OccurredAt: at.Add(2 * time.Hour), SessionID: "0", Data: limit})
	for later, want := range map[time.Duration]int64{0: mostReached + 4, 23 * time.Hour: mostReached + 4, 25 * time.Hour: 0} {
		wantEqual(t, fmt.Sprint("how many were reached, ", later, " later"), s.last(at.Add(later))["max_actions"], want)
	}
	wantEqual(t, "sessions that are remembered", len(s.reached), mostReached)
	s.count(eventRow{Type: "session.ended", SessionID: "1"})
	s.count(eventRow{Type: "session.limit_reached", OccurredAt: at.Add(26 * time.Hour), SessionID: "new", Data: limit})
	if _, kept := s.reached["1"]; kept || len(s.reached) != 2 {
		t.Errorf("a day later %d sessions are remembered", len(s.reached))
	}
}

func TestSessionsNearALimitAreSortedByHowNear(t *testing.T) {
	t.Parallel()
	near := []sessionRow{
		sessionAt("79.9 %", client.SessionInfo{ActionCount: 799, MaxActions: 1000, MaxValue: money.USD}),
		sessionAt("80 %", client.SessionInfo{ActionCount: 80, MaxActions: 100, MaxValue: money.USD}),
		sessionAt("99.9 %", client.SessionInfo{ActionCount: 1, MaxActions: 100, ValueUsed: 999_000, MaxValue: money.USD}),
		sessionAt("99.1 %, held and delegated", client.SessionInfo{MaxActions: 100, ValueUsed: 1000, ValueHeld: 490_000, ValueDelegated: 500_000, MaxValue: money.USD}),
		sessionAt("120 %, with what is beyond", client.SessionInfo{MaxActions: 100, ValueUsed: 700_000, ValueOverage: 500_000, MaxValue: money.USD}),
		sessionAt("a limit of nothing", client.SessionInfo{MaxActions: 100}),
		sessionAt("90 % delegated", client.SessionInfo{ActionsDelegated: 90, MaxActions: 100, MaxValue: money.USD}),
		sessionAt("the largest", client.SessionInfo{ActionCount: 1<<63 - 1, MaxActions: 1<<63 - 1, MaxValue: money.USD}),
	}
	over := sessionAt("over", client.SessionInfo{ActionCount: 100, MaxActions: 100, MaxValue: money.USD})
	over.Status = "completed"
	want := []string{"120 %, with what is beyond", "the largest", "99.9 %", "99.1 %, held and delegated", "90 % delegated", "80 %"}
	wantEqual(t, "the nearest", idsOf(nearest(append(near, over))), want)
}

func sessionAt(id string, s client.SessionInfo) sessionRow {
	s.ID, s.Status = id, statusActive
	return sessionRow{SessionInfo: s}
}
