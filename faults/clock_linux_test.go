package faults

import (
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// The clock of Redis is the only one that sessions live by. When it is set wrong and right again, sessions expire by it,
// the books stay right, and what is revoked stays revoked: marks outlive the access tokens, which live by the service's
// clock, by more than that.
func TestAClockThatStepsTwoHoursKeepsTheBooksAndRevocations(t *testing.T) {
	machine, redis := onMachine(t, "always")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	session := s.openSession(s.World.Agents[0].ID, time.Hour)
	revoker := &worker{Fleet: s.fleet, number: s.setup.Workers, agent: s.World.Agents[0], random: rand.New(rand.NewPCG(s.seed, 1000))}
	for range rounds(1) {
		for range 20 {
			revoker.revokeFamily()
		}
		for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour, 2 * time.Hour, 0} {
			machine.StepClock(ahead)
			wantClock(t, redis, ahead)
			s.FaultOver()
			s.exchangeSecrets(20) // which forgets what is marked as revoked and need not be any more
			s.Acknowledged(60)
			want := "active"
			if ahead > time.Hour {
				want = "expired"
			}
			if got := s.sessionNow(session).Status; got != want {
				t.Errorf("with the clock %v ahead a session of one hour is %s, want %s", ahead, got, want)
			}
			if listed := s.listsAsActive(session); listed != (want == "active") {
				t.Errorf("with the clock %v ahead it is listed as active: %t", ahead, listed)
			}
		}
	}
	violations := slices.DeleteFunc(s.Violations(), func(v Violation) bool {
		// Who asks again with a spent refresh token asks after the grace time, when the clock has stepped ahead.
		return v.Rule == RuleDenied && strings.HasPrefix(v.Subject, string(Refresh)) && strings.Contains(v.Detail, "invalid_refresh_token")
	})
	for _, v := range violations {
		t.Error(v)
	}
}

// wantClock expects Redis to take the time for so much later than it is.
func wantClock(t *testing.T, r *Redis, ahead time.Duration) {
	t.Helper()
	now, err := r.Client().Time(t.Context()).Result()
	if off := time.Until(now) - ahead; err != nil || off.Abs() > time.Minute {
		t.Errorf("the clock of Redis is ahead by %v, want %v (%v)", time.Until(now), ahead, err)
	}
}

// exchangeSecrets exchanges the first agent's secret so many times.
func (s *Scenario) exchangeSecrets(many int) {
	s.t.Helper()
	for range many {
		agent := s.World.Agents[0]
		if call, body := s.Caller.Do(s.Instances[0].URL, exchange(agent.ID, agent.Secret)); call.Outcome != OK {
			s.t.Errorf("no token: %d %s", call.Status, body)
		}
	}
}

// listsAsActive says whether the session is in a list of active sessions, reading all its pages.
func (s *Scenario) listsAsActive(session string) bool {
	s.t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	url := s.Instances[0].URL + "/sessions?status=active&limit=200"
	for {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			s.t.Fatal(err)
		}
		request.Header.Set("X-API-Key", s.World.APIKey)
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
