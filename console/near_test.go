package console

import (
	"slices"
	"testing"

	"remit/client"
	"remit/money"
)

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
	if got := idsOf(nearest(append(near, over))); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func sessionAt(id string, s client.SessionInfo) sessionRow {
	s.ID, s.Status = id, statusActive
	return sessionRow{SessionInfo: s}
}

func TestTheOverviewShowsTheNearestSessionFirstWithItsShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	b := w.as(t, viewer)
	for _, used := range []int{10, 8, 9} { // events name the last one last
		near := w.newSession(ids["agent"], map[string]any{"max_actions": 10, "max_value_usd": 1})
		w.asAdmin("POST", "/v1/sessions/"+near+"/actions", map[string]any{"count": used})
	}
	w.overviewSays(b, "100 % 10 of 10")
	w.overviewSays(b, "90 % 9 of 10")
	shown := w.overviewSays(b, "80 % 8 of 10")
	var actions, levels []string
	for bar := range shown.elements("svg") {
		if classes := attribute(bar, "class"); attribute(bar.Parent, "data-live-bar") != "" && classes != "chart-usage" {
			actions, levels = append(actions, textOf(bar.Parent)), append(levels, classes)
		}
	}
	if want := []string{"0 left. 100 %", "1 left. 90 %", "2 left. 80 %"}; !slices.Equal(actions, want) {
		t.Errorf("the bars are %q, want %q", actions, want)
	}
	if want := []string{"chart-usage chart-full", "chart-usage chart-near", "chart-usage chart-near"}; !slices.Equal(levels, want) {
		t.Errorf("the levels are %q, want %q", levels, want)
	}
}
