package faults

import (
	"testing"

	"remit/internal/redisproc"
)

// Instances die in the middle of creations, top-ups, ends and settlements. Nothing is lost or counted twice, and what was set aside
// for no caller comes back.
func TestTreesAreExactThoughTheServiceIsKilled(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t, redisproc.Config{}, Setup{Workers: 2})
	w := s.StartTrees(3)
	killInstances(s, w, 2)
	w.Finish()
	s.Finish()
}

// killInstances kills the instances in turn, after a few more calls of growers each.
func killInstances(s *Scenario, w *Trees, times int) {
	for n := range times {
		w.AwaitCalls(int64(10 + n%40))
		s.Instances[n%2].Kill()
		w.AwaitCalls(5) // the other one goes on
		s.Restart(n % 2)
	}
	s.AwaitRecovery()
	w.AwaitCalls(30)
}
