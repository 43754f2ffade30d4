package faults

import (
	"testing"
	"time"

	"remit/redisproc"
)

// answerLimit is how long a call may take that Redis does not answer: two seconds for a read of a socket, three for all
// of it, and what a busy machine adds.
const answerLimit = 5 * time.Second

// A Redis that is there and says nothing is the worst: every call waits, and none may wait for long.
func TestAFrozenRedisIsGivenUpAndNothingPilesUp(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{Fsync: "always"})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for range rounds(1) {
		frozen := s.History.Now()
		redis.Freeze()
		time.Sleep(9 * time.Second) // this is the fault: it lasts
		s.goroutinesUnderLoad(1)
		time.Sleep(time.Second)
		redis.Thaw()
		s.FaultOver()
		s.checkGivenUp(frozen, s.History.Now())
		s.Restart(1)
		s.Acknowledged(100)
	}
	s.Finish()
}

// goroutinesUnderLoad ends an instance to count its goroutines, and starts another in its place. Each call that it is at
// takes one, and the connection to Redis perhaps another.
func (s *Scenario) goroutinesUnderLoad(instance int) {
	s.t.Helper()
	i := s.Instances[instance]
	stacks, err := i.Goroutines()
	if err != nil {
		s.t.Fatal(err)
	}
	calls := 3 * s.setup.Workers // no worker makes more at once
	if most := s.baseline.goroutines + 2*calls; len(stacks) > most {
		s.t.Errorf("%d goroutines, at rest %d, with at most %d calls under way:\n%v", len(stacks), s.baseline.goroutines, calls, stacks)
	}
	s.t.Logf("%d goroutines, at rest %d", len(stacks), s.baseline.goroutines)
}

// checkGivenUp expects every call that began then to have been answered, in time, and as one that Redis did not answer.
func (s *Scenario) checkGivenUp(from, to time.Duration) {
	s.t.Helper()
	slowest, unanswered := time.Duration(0), 0
	for _, c := range s.History.Calls() {
		if c.Began < from || c.Ended > to || c.Instance == s.Instances[1].URL {
			continue
		}
		slowest = max(slowest, c.Ended-c.Began)
		if c.Status == 0 {
			unanswered++
		}
	}
	s.t.Logf("the slowest answer took %v", slowest.Round(time.Millisecond))
	if slowest > answerLimit || unanswered > 0 {
		s.t.Errorf("the slowest answer took %v, want %v at most; %d calls had none", slowest, answerLimit, unanswered)
	}
}
