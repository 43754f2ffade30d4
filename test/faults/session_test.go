//go:build long

package faults

import (
	"encoding/json"
	"net/http"
	"time"

	"remit/money"
)

// openSession creates a session of the agent with that lifetime.
func (s *Scenario) openSession(agent string, lifetime time.Duration) (id string) {
	s.t.Helper()
	r := s.Fixture.createSession(agent, 1000, money.USD)
	r.Body.(object)["expires_in_seconds"] = int(lifetime.Seconds())
	call, body := s.Caller.Do(s.Instances[0].URL, r)
	var session struct{ ID string }
	if err := json.Unmarshal(body, &session); err != nil || call.Outcome != OK {
		s.t.Fatalf("session: %d %v %s", call.Status, err, body)
	}
	note(s.Fixture, &s.Fixture.sessions, session.ID)
	return session.ID
}

func (s *Scenario) readSession(id string) (now Session) {
	s.t.Helper()
	call, body := s.Caller.Do(s.Instances[0].URL, Request{Call: Call{Kind: Read}, Method: http.MethodGet, Path: "/sessions/" + id, APIKey: s.Fixture.APIKey})
	if err := json.Unmarshal(body, &now); err != nil || call.Outcome != OK {
		s.t.Fatalf("session: %d %v %s", call.Status, err, body)
	}
	return now
}
