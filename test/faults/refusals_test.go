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
		if got := readyz(i); got != http.StatusServiceUnavailable {
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
		last := ""
		for deadline := time.Now().Add(time.Minute); last != code; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				s.t.Fatalf("%s answers %q to charges, want %s", i.URL, last, code)
			}
			call, _ := s.Caller.Do(i.URL, ChargeSession(agent, agent.Unkeyed, 1, 1))
			last = call.Code
		}
	}
}

// awaitReady returns when every instance is ready.
func (s *Scenario) awaitReady() {
	s.t.Helper()
	for _, i := range s.Instances {
		for deadline := time.Now().Add(time.Minute); readyz(i) != http.StatusOK; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				s.t.Fatalf("%s is not ready", i.URL)
			}
		}
	}
}

// readyz returns the status of an instance's readiness probe, or 0 without an answer.
func readyz(i *Instance) int {
	client := http.Client{Timeout: callLimit}
	defer client.CloseIdleConnections()
	response, err := client.Get(i.URL + "/readyz")
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}
