package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"remit/internal/redisproc"
)

// After SIGTERM an instance answers every request that it has accepted, and exits with 0. It must not have executed a
// request that gets no answer, so a client may retry it (and with an idempotency key, does).
func TestStoppedInstanceDrainsAcceptedRequests(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t, redisproc.Config{}, Setup{Workers: 32})
	var stops []time.Duration
	for n := range rounds(2) {
		s.AwaitAcknowledged(200)
		stops = append(stops, s.History.Now())
		signalled := time.Now()
		if err := s.Instances[n%2].Terminate(); err != nil {
			t.Errorf("SIGTERM: %v", err)
		}
		if took := time.Since(signalled); took > ExitLimit {
			t.Errorf("it ended %v after SIGTERM, want %v at most", took, ExitLimit)
		}
		s.AwaitAcknowledged(50) // at the other instance
		s.Restart(n % 2)
	}
	s.AwaitRecovery()
	s.StopWorkers()
	calls := s.History.Calls()
	unanswered := map[int][]string{} // by how many stops came before
	for n, c := range calls {
		if c.Status != 0 || c.Code == codeUnreachable || strings.Contains(c.Err, neverSent) {
			continue
		}
		stop := len(slices.DeleteFunc(slices.Clone(stops), func(at time.Duration) bool { return at > c.Ended }))
		unanswered[stop] = append(unanswered[stop], c.Err)
		if wasExecuted(calls, n) {
			t.Errorf("%s with the key %s was executed at %s but not answered: %s", c.Kind, c.Key, c.Instance, c.Err)
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
	// mostUnanswered is how many calls per stop may meet a connection that the server is just closing. HTTP cannot rule
	// that out. On two busy cores it is up to three. A server that drops requests in flight leaves more, some of them
	// executed.
	mostUnanswered = 3
	// neverSent is the error of net/http for a connection that was closed before it wrote the request.
	neverSent = "server closed idle connection"
)

// wasExecuted says whether a call without an answer took effect: then the first acknowledgement of its key is a replay.
func wasExecuted(calls []Call, n int) bool {
	if calls[n].Key == "" {
		return false
	}
	for _, c := range calls {
		if c.Key == calls[n].Key && c.Subject == calls[n].Subject && c.Outcome == OK {
			return c.Replayed // the first acknowledgement
		}
	}
	return false
}
