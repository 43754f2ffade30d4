//go:build long

package faults

import (
	"net/http"
	"time"
)

// refusesWritesAndReads expects every instance to refuse charges as unavailable, to be not ready, and to serve reads.
func (s *Scenario) refusesWritesAndReads() {
	s.t.Helper()
	s.awaitRefusal("unavailable")
	for _, i := range s.Instances {
		if got := s.readyz(i); got != http.StatusServiceUnavailable {
			s.t.Errorf("/readyz answers %d, want 503", got)
		}
		agent := s.Fixture.Agents[0]
		for what, path := range map[string]string{"a session": "/sessions/" + agent.Roomy, "its list": "/sessions", "its token": "/v1/auth/verify"} {
			call, body := s.Caller.Do(i.URL, Request{Call: Call{Kind: Read}, Method: http.MethodGet, Path: path, Token: agent.Access})
			if call.Outcome != OK {
				s.t.Errorf("while Redis refuses writes, %s cannot be read: %d %s", what, call.Status, body)
			}
		}
	}
}

// awaitRefusal returns when every instance refuses charges with the code.
func (s *Scenario) awaitRefusal(code string) {
	s.t.Helper()
	agent := s.Fixture.Agents[0]
	for _, i := range s.Instances {
		waitUntil(s.t, time.Minute, i.URL+" answers charges with "+code, func() bool {
			call, _ := s.Caller.Do(i.URL, ChargeSession(agent, agent.Unkeyed, 1, 1))
			return call.Code == code
		})
	}
}

// readyz returns the status of an instance's readiness probe, or 0 without an answer.
func (s *Scenario) readyz(i *Instance) int {
	status, _, _, _ := s.Caller.send(i.URL, Request{Method: http.MethodGet, Path: "/readyz"})
	return status
}
