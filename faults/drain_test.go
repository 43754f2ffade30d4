package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remit/redisproc"
)

// An instance that is told to stop answers all that it has accepted, and ends in order. What it has not read when it closes
// a connection has not happened: a client that gets no answer there may ask again (and with an idempotency key, does).
func TestAnInstanceToldToStopAnswersWhatItHasAccepted(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}, Workers: 32})
	var stops []time.Duration
	for n := range rounds(2) {
		s.Acknowledged(200)
		stops = append(stops, s.History.Now())
		told := time.Now()
		if err := s.Instances[n%2].Terminate(); err != nil {
			t.Errorf("told to stop: %v", err)
		}
		if took := time.Since(told); took > ExitLimit {
			t.Errorf("it ended %v after it was told to, want %v at most", took, ExitLimit)
		}
		s.Acknowledged(50) // at the other one
		s.Restart(n % 2)
	}
	s.FaultOver()
	s.Rest()
	calls := s.History.Calls()
	unanswered := map[int][]string{} // by the last stop before: 0 is before the first
	for n, c := range calls {
		if c.Status != 0 || c.Code == codeUnreachable || strings.Contains(c.Err, neverSent) {
			continue
		}
		stop := len(slices.DeleteFunc(slices.Clone(stops), func(at time.Duration) bool { return at > c.Ended }))
		unanswered[stop] = append(unanswered[stop], c.Err)
		if wasCarriedOut(calls, n) {
			t.Errorf("%s with the key %s was carried out at %s, and not answered: %s", c.Kind, c.Key, c.Instance, c.Err)
		}
	}
	for stop, errs := range unanswered {
		if stop == 0 || len(errs) > mostUnanswered {
			t.Errorf("stop %d left %d calls unanswered, want %d at most, and none before the first: %q", stop, len(errs), mostUnanswered, errs)
		}
	}
	t.Logf("unanswered, by stop: %v", unanswered)
	s.Finish()
}

const (
	// mostUnanswered is how many calls may be sent, at one stop, in the moment in which the server closes their connection:
	// HTTP cannot rule that out. On two busy cores it is up to three; a server that drops what it is at leaves more, and
	// what it has carried out.
	mostUnanswered = 3
	// neverSent is what net/http says of a connection that it found closed before it wrote to it.
	neverSent = "server closed idle connection"
)

// wasCarriedOut says whether a call without an answer has had its effect: the next answer to its key is then a replay,
// though nobody was answered before.
func wasCarriedOut(calls []Call, n int) bool {
	if calls[n].Key == "" {
		return false
	}
	for _, c := range calls {
		if c.Key == calls[n].Key && c.Subject == calls[n].Subject && c.Outcome == OK {
			return c.Replayed // the first that was acknowledged
		}
	}
	return false
}
