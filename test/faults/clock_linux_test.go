//go:build long

package faults

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Sessions expire by the clock of Redis alone. When that clock steps, sessions expire by it, totals still reconcile, and
// revocations hold: a revocation is stored for more than two hours longer than the access tokens live, which expire by the
// clock of the service.
func TestClockStepsKeepTotalsAndRevocations(t *testing.T) {
	machine, redis := onMachine(t, "always")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	session := s.openSession(s.Fixture.Agents[0].ID, time.Hour)
	revoker := s.fleet.newWorker(s.setup.Workers)
	for range rounds(1) {
		for range 20 {
			revoker.revokeFamily()
		}
		for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour, 2 * time.Hour, 0} {
			machine.StepClock(ahead)
			wantClock(t, redis, ahead)
			s.AwaitRecovery()
			s.exchangeSecrets(20) // an exchange prunes the agent's old revocations
			s.AwaitAcknowledged(60)
			want := "active"
			if ahead > time.Hour {
				want = "expired"
			}
			if got := s.readSession(session).Status; got != want {
				t.Errorf("with the clock %v ahead a session of one hour is %s, want %s", ahead, got, want)
			}
			if listed := s.listsAsActive(session); listed != (want == "active") {
				t.Errorf("with the clock %v ahead it is listed as active: %t", ahead, listed)
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

// wantClock checks that the clock of Redis is ahead by that much.
func wantClock(t *testing.T, r *Redis, ahead time.Duration) {
	t.Helper()
	now, err := r.Client().Time(t.Context()).Result()
	if off := time.Until(now) - ahead; err != nil || off.Abs() > time.Minute {
		t.Errorf("the clock of Redis is ahead by %v, want %v (%v)", time.Until(now), ahead, err)
	}
}

// exchangeSecrets exchanges the first agent's secret for tokens, so many times.
func (s *Scenario) exchangeSecrets(many int) {
	s.t.Helper()
	for range many {
		agent := s.Fixture.Agents[0]
		if call, body := s.Caller.Do(s.Instances[0].URL, exchange(agent.ID, agent.Secret)); call.Outcome != OK {
			s.t.Errorf("no token: %d %s", call.Status, body)
		}
	}
}

// listsAsActive reads all pages of the list of active sessions, and says whether the session is on one.
func (s *Scenario) listsAsActive(session string) bool {
	s.t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	url := s.Instances[0].URL + "/sessions?status=active&limit=200"
	for {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			s.t.Fatal(err)
		}
		request.Header.Set("X-API-Key", s.Fixture.APIKey)
		answer, err := client.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			s.t.Fatalf("no list: %d %v %s", answer.StatusCode, err, body)
		}
		if strings.Contains(string(body), session) {
			return true
		}
		next, found := strings.CutSuffix(answer.Header.Get("Link"), `>; rel="next"`)
		if !found {
			return false
		}
		url = s.Instances[0].URL + strings.TrimPrefix(next, "<")
	}
}
