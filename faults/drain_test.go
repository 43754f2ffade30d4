package faults

import (
	"testing"

	"remit/redisproc"
)

// An instance that is told to stop answers all that it has accepted, and ends in order. What it has not read when it closes
// a connection has not happened: a client that gets no answer there may ask again (and with an idempotency key, does).
func TestAnInstanceToldToStopAnswersWhatItHasAccepted(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}, Workers: 32})
	for n := range rounds(2) {
		s.Acknowledged(200)
		if err := s.Instances[n%2].Terminate(); err != nil {
			t.Errorf("told to stop: %v", err)
		}
		s.Acknowledged(50) // at the other one
		s.Restart(n % 2)
	}
	s.FaultOver()
	s.Rest()
	calls := s.History.Calls()
	var unanswered []string
	for n, c := range calls {
		if c.Status != 0 || c.Code == codeUnreachable {
			continue
		}
		unanswered = append(unanswered, c.Err)
		if wasCarriedOut(calls, n) {
			t.Errorf("%s with the key %s was carried out at %s, and not answered: %s", c.Kind, c.Key, c.Instance, c.Err)
		}
	}
	// HTTP cannot rule these out, where a client sends just when the server closes what it had not used for a while.
	t.Logf("%d calls met a connection that was being closed: %q", len(unanswered), unanswered)
	s.Finish()
}

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
