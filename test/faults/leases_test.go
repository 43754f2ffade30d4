package faults

import (
	"testing"

	"remit/internal/redisproc"
	"remit/test/suite"
)

// What a killed holder held counts as spent, in full. The others use the session up to its limit, and never beyond.
func TestWhatAKilledHolderHeldCountsInFull(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t, redisproc.Config{}, Setup{Workers: 4})
	most, kills := int64(1500), 1
	if suite.Long {
		most, kills = 5000, rounds(3)
	}
	h := s.StartHolders(2, most)
	for range kills {
		h.AwaitGranted(100)
		h.Kill()
	}
	h.AwaitUsedUp()
	fact := h.Finish()
	if _, unsettled, _ := fact.booked(); fact.stored.Actions != most || unsettled.actions == 0 {
		t.Errorf("%d of %d actions are used, %+v of them by killed holders", fact.stored.Actions, most, unsettled)
	}
	s.Finish()
}
