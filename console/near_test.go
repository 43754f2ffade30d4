package console

import (
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
	wantEqual(t, "the nearest", idsOf(nearest(append(near, over))), want)
}

func sessionAt(id string, s client.SessionInfo) sessionRow {
	s.ID, s.Status = id, statusActive
	return sessionRow{SessionInfo: s}
}
