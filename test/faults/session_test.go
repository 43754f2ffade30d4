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
	var session struct{ ID string }
	must(0, json.Unmarshal(s.callOK(r), &session))(s.t)
	note(s.Fixture, &s.Fixture.sessions, session.ID)
	return session.ID
}

func (s *Scenario) readSession(id string) (now Session) {
	s.t.Helper()
	body := s.callOK(Request{Call: Call{Kind: Read}, Method: http.MethodGet, Path: "/sessions/" + id, APIKey: s.Fixture.APIKey})
	must(0, json.Unmarshal(body, &now))(s.t)
	return now
}

// callOK makes a call that must be acknowledged, and returns the answer.
func (s *Scenario) callOK(r Request) []byte {
	s.t.Helper()
	call, body := s.Caller.Do(s.Instances[0].URL, r)
	if call.Outcome != OK {
		s.t.Fatalf("%s: %d %s %s", r.Path, call.Status, call.Err, body)
	}
	return body
}
