package faults

import "testing"

// While a slot migrates, its keys are on two nodes for some milliseconds. Neither can run a script with keys on both.
func TestSlotMigrationUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	s := New(t, Setup{URL: c.URL(), Servers: c.Addrs})
	began, keys, moves := s.History.Now(), 0, 0
	for round := range rounds(4) {
		if round%2 == 1 {
			c.FlushScripts() // the slot moves to a node without the scripts
		}
		s.AwaitAcknowledged(200)
		for _, agent := range s.Fixture.Agents {
			slot := c.SlotOf(agent.ID)
			keys += c.Move(slot, (c.PrimaryOf(slot)+1)%primaries)
			moves++
		}
		s.AwaitRecovery()
	}
	s.StopWorkers()
	unavailable := map[string]int{} // by code
	for _, c := range s.History.Calls() {
		if c.Began >= began && c.Status == 503 {
			unavailable[c.Code]++
		}
	}
	t.Logf("%d moves of slots with %d keys together; 503: %v", moves, keys, unavailable)
	if unavailable["outcome_unknown"] > 0 {
		t.Errorf("%d calls have an unknown outcome, though no answer was lost", unavailable["outcome_unknown"])
	}
	s.Finish()
}
