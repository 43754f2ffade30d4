//go:build long

package faults

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Sessions expire by the clock of Redis alone. When that clock steps, sessions expire by it, totals still reconcile, and
// revocations hold: a revocation is stored for more than two hours longer than the access tokens live, which expire by the
// clock of the service. An expiry that was recorded stays one when the clock steps back.
func TestClockStepsKeepTotalsAndRevocations(t *testing.T) {
	t.Parallel()
	machine, redis, s := onMachine(t, "always")
	revoker := s.fleet.newWorker(s.setup.Workers)
	for range rounds(1) {
		session := s.openSession(s.Fixture.Agents[0].ID, time.Hour)
		for range 20 {
			revoker.revokeFamily()
		}
		for _, step := range []struct {
			ahead  time.Duration
			status string
		}{{-2 * time.Hour, "active"}, {2 * time.Hour, "expired"}, {-2 * time.Hour, "expired"}, {0, "expired"}} {
			machine.StepClock(step.ahead)
			now := must(redis.Client().Time(t.Context()).Result())(t)
			if off := time.Until(now) - step.ahead; off.Abs() > time.Minute {
				t.Errorf("the clock of Redis is ahead by %v, want %v", time.Until(now), step.ahead)
			}
			s.AwaitRecovery()
			for range 20 { // an exchange prunes the agent's old revocations
				s.callOK(exchange(s.Fixture.Agents[0].ID, s.Fixture.Agents[0].Secret))
			}
			s.AwaitAcknowledged(60)
			if step.ahead > time.Hour {
				waitUntil(t, time.Minute, "the expiry is recorded", func() bool { return s.hasExpired(session) })
			}
			if got := s.readSession(session).Status; got != step.status {
				t.Errorf("with the clock %v ahead a session of one hour is %s, want %s", step.ahead, got, step.status)
			}
			if listed := s.listsAsActive(session); listed != (step.status == "active") {
				t.Errorf("with the clock %v ahead it is listed as active: %t", step.ahead, listed)
			}
		}
	}
	violations := slices.DeleteFunc(s.Violations(), func(v Violation) bool {
		// A retry with a spent refresh token comes after the grace time when the clock has stepped ahead. So does the second of two
		// settlements at once after the hour for which a settled lease is kept; Check counts them as one.
		return v.Rule == RuleDenied && (strings.HasPrefix(v.Subject, string(Refresh)) && strings.Contains(v.Detail, "invalid_refresh_token") ||
			strings.HasPrefix(v.Subject, string(Settle)) && strings.Contains(v.Detail, "404 not_found"))
	})
	for _, v := range violations {
		t.Error(v)
	}
}

// hasExpired says whether the feed of the organization has the expiry of the session.
func (s *Scenario) hasExpired(session string) bool {
	s.t.Helper()
	body := s.callOK(Request{Call: Call{Kind: Read}, Method: http.MethodGet, Path: "/v1/events?types=session.expired", APIKey: s.Fixture.APIKey})
	return strings.Contains(string(body), session)
}

// listsAsActive reads all pages of the list of active sessions, and says whether the session is on one.
func (s *Scenario) listsAsActive(session string) bool {
	s.t.Helper()
	for path, found := "/sessions?status=active&limit=200", true; found; {
		status, header, body, err := s.Caller.send(s.Instances[0].URL, Request{Method: http.MethodGet, Path: path, APIKey: s.Fixture.APIKey})
		if err != nil || status != http.StatusOK {
			s.t.Fatalf("no list: %d %v %s", status, err, body)
		}
		if strings.Contains(string(body), session) {
			return true
		}
		path, found = strings.CutSuffix(strings.TrimPrefix(header.Get("Link"), "<"), `>; rel="next"`)
	}
	return false
}
