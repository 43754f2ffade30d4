package faults

import (
	"testing"

	"remit/internal/redisproc"
	"remit/test/suite"
)

// Instances die in the middle of creations, top-ups, ends and settlements. Nothing is lost or counted twice, and what was set aside
// for no caller comes back.
func TestTreesAreExactThoughTheServiceIsKilled(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t, redisproc.Config{}, Setup{Workers: 2})
	trees, kills := 3, 2
	if suite.Long {
		trees, kills = 6, rounds(200)
	}
	w := s.StartTrees(trees)
	for n := range kills {
		w.AwaitCalls(int64(10 + n%40))
		s.Instances[n%2].Kill()
		w.AwaitCalls(5) // the other one goes on
		s.Restart(n % 2)
	}
	s.AwaitRecovery()
	w.AwaitCalls(30)
	if suite.Long {
		w.NeedParts()
	}
	w.Finish()
	for _, what := range []string{"child", "top-up", "end"} {
		if n := w.BrokenOff(what); n == 0 && suite.Long { // two kills need not meet each
			t.Errorf("no %s was broken off", what)
		}
	}
	s.Finish()
}
