package faults

import (
	"testing"
	"time"

	"remit/redisproc"
)

// answerLimit is how long a call may take that Redis does not answer: two seconds for a read of a socket, three for all
// of it, and what a busy machine adds. It is less than the fault lasts.
const answerLimit = 8 * time.Second

// A Redis that is there and says nothing is the worst: every call waits, and none may wait for long.
func TestAFrozenRedisIsGivenUpAndNothingPilesUp(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{Fsync: "always"})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	var faults []span
	for range rounds(1) {
		frozen := s.History.Now()
		redis.Freeze()
		time.Sleep(9 * time.Second) // this is the fault: it lasts
		s.goroutinesUnderLoad(1)
		time.Sleep(time.Second)
		redis.Thaw()
		s.FaultOver()
		faults = append(faults, span{frozen, s.History.Now()})
		s.Restart(1)
		s.Acknowledged(100)
	}
	s.Rest() // a call is recorded when it has ended: now all are, however long they hung
	for _, f := range faults {
		s.checkGivenUp(f)
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

// span is a part of a history.
type span struct{ from, to time.Duration }

// checkGivenUp expects every call that began then to have been answered in time, whenever it ended. The second instance
// has been ended meanwhile.
func (s *Scenario) checkGivenUp(during span) {
	s.t.Helper()
	slowest, unanswered, given := time.Duration(0), 0, 0
	for _, c := range s.History.Calls() {
		if c.Began < during.from || c.Began > during.to || c.Instance == s.Instances[1].URL {
			continue
		}
		slowest = max(slowest, c.Ended-c.Began)
		if c.Status == 503 {
			given++
		}
		if c.Status == 0 {
			unanswered++
		}
	}
	s.t.Logf("the slowest answer took %v", slowest.Round(time.Millisecond))
	if slowest > answerLimit || unanswered > 0 {
		s.t.Errorf("the slowest answer took %v, want %v at most; %d calls had none", slowest, answerLimit, unanswered)
	}
	if given == 0 {
		s.t.Error("no call was given up: Redis was not frozen")
	}
}
