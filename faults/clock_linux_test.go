package faults

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/money"
)

// The clock of Redis is the only one that sessions live by. When it is set wrong and right again, sessions expire by it,
// the books stay right, and what is revoked stays revoked: marks outlive the access tokens, which live by the service's
// clock, by more than that.
func TestAClockThatStepsTwoHoursKeepsTheBooksAndRevocations(t *testing.T) {
	machine, redis := onMachine(t, "always")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	session := s.openSession(time.Hour)
	for range rounds(1) {
		s.revokeFamilies(20)
		for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour, 2 * time.Hour, 0} {
			machine.StepClock(ahead)
			s.FaultOver()
			s.exchangeSecrets(20) // which forgets what is marked as revoked and need not be any more
			s.Acknowledged(100)
			want := "active"
			if ahead > time.Hour {
				want = "expired"
			}
			if got := s.sessionNow(session).Status; got != want {
				t.Errorf("with the clock %v ahead a session of one hour is %s, want %s", ahead, got, want)
			}
		}
	}
	violations := slices.DeleteFunc(s.Violations(), func(v Violation) bool {
		// Who asks again with a spent refresh token asks after the grace time, when the clock has stepped ahead.
		return v.Rule == RuleAnswer && strings.HasPrefix(v.Subject, string(Refresh)) && strings.Contains(v.Detail, "invalid_refresh_token")
	})
	for _, v := range violations {
		t.Error(v)
	}
}

// revokeFamilies revokes so many token families of the first agent, and uses each in vain.
func (s *Scenario) revokeFamilies(many int) {
	w := &worker{Fleet: s.fleet, agent: s.World.Agents[0], random: rand.New(rand.NewPCG(s.seed, 1000))}
	for range many {
		w.revokeFamily()
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

// openSession opens a session with that lifetime, of the first agent.
func (s *Scenario) openSession(lifetime time.Duration) (id string) {
	s.t.Helper()
	r := s.World.createSession(s.World.Agents[0].ID, 1000, money.USD)
	r.Body.(object)["expires_in_seconds"] = int(lifetime.Seconds())
	call, body := s.Caller.Do(s.Instances[0].URL, r)
	var session struct{ ID string }
	if err := json.Unmarshal(body, &session); err != nil || call.Outcome != OK {
		s.t.Fatalf("no session: %d %v %s", call.Status, err, body)
	}
	s.World.keepSession(session.ID)
	return session.ID
}

func (s *Scenario) sessionNow(id string) (now Session) {
	s.t.Helper()
	call, body := s.Caller.Do(s.Instances[0].URL, Request{Call: Call{Kind: Read}, Method: http.MethodGet, Path: "/sessions/" + id, APIKey: s.World.APIKey})
	if err := json.Unmarshal(body, &now); err != nil || call.Outcome != OK {
		s.t.Fatalf("no session: %d %v %s", call.Status, err, body)
	}
	return now
}
