//go:build long

package faults

import (
	"testing"
	"time"

	"remit/internal/redisproc"
)

// answerLimit is how long a call may take while Redis does not answer: two seconds for a read from the socket, three for
// the whole call, and the rest for a busy machine. It is shorter than the fault.
const answerLimit = 8 * time.Second

// A frozen Redis keeps its connections open and never answers, so every call waits until its time limit.
func TestCallsTimeOutWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{Fsync: "always"}, Setup{})
	var faults []span
	for range rounds(1) {
		frozen := s.History.Now()
		redis.Freeze()
		time.Sleep(9 * time.Second)                    // the duration of the fault
		stacks := must(s.Instances[1].Goroutines())(t) // which ends it
		calls := 3 * s.setup.Workers                   // no worker makes more at once
		// Each call in flight takes a goroutine, and its connection to Redis perhaps another.
		if most := len(s.baseline.goroutines) + 2*calls; len(stacks) > most {
			t.Errorf("%d goroutines, at rest %d, with at most %d calls in flight:\n%v", len(stacks), len(s.baseline.goroutines), calls, stacks)
		}
		time.Sleep(time.Second)
		redis.Thaw()
		s.AwaitRecovery()
		faults = append(faults, span{frozen, s.History.Now()})
		s.Restart(1)
		s.AwaitAcknowledged(100)
	}
	s.StopWorkers() // the history has a call only when it has ended
	for _, f := range faults {
		s.checkTimedOut(f)
	}
	s.Finish()
}

// span is a part of a history.
type span struct{ from, to time.Duration }

// checkTimedOut expects every call that began in the span to have been answered within answerLimit. It leaves out the second
// instance, which was ended meanwhile.
func (s *Scenario) checkTimedOut(during span) {
	s.t.Helper()
	slowest, unanswered, timedOut := time.Duration(0), 0, 0
	for _, c := range s.History.Calls() {
		if c.Began < during.from || c.Began > during.to || c.Instance == s.Instances[1].URL {
			continue
		}
		slowest = max(slowest, c.Ended-c.Began)
		if c.Status == 503 {
			timedOut++
		}
		if c.Status == 0 {
			unanswered++
		}
	}
	s.t.Logf("the slowest answer took %v", slowest.Round(time.Millisecond))
	if slowest > answerLimit || unanswered > 0 {
		s.t.Errorf("the slowest answer took %v, want %v at most; %d calls had none", slowest, answerLimit, unanswered)
	}
	if timedOut == 0 {
		s.t.Error("no call timed out: Redis was not frozen")
	}
}
