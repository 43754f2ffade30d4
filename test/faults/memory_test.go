//go:build long

package faults

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/money"
)

// A full Redis refuses a script before its first write, so 503 unavailable is correct.
func TestFullRedisRefusesWritesAndServesReads(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{}, Setup{})
	for range rounds(1) {
		limitMemory(t, redis, "1mb") // less than an empty Redis uses
		s.refusesWritesAndReads()
		limitMemory(t, redis, "0") // no limit
		s.AwaitRecovery()
		s.AwaitAcknowledged(100)
	}
	s.Finish()
}

func limitMemory(t *testing.T, r *Redis, limit string) {
	t.Helper()
	must(0, r.Client().ConfigSet(t.Context(), "maxmemory", limit).Err())(t)
}

// An organization that has filled Redis must be stoppable, so revoking and ending still work.
func TestFullRedisStillRevokesAndEnds(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{}, Setup{})
	revocations := s.authority()
	limitMemory(t, redis, "1mb")
	s.awaitRefusal("unavailable")
	for n, r := range revocations {
		at := s.Instances[n%len(s.Instances)].URL
		if call, body := s.Caller.Do(at, r.revoke); call.Outcome != OK {
			t.Errorf("%s: %d %s", call.Subject, call.Status, body)
		}
		for _, use := range r.uses {
			use.Kind, use.Subject, use.Note = Use, r.revoke.Subject, nothing
			s.Caller.Do(at, use) // Finish checks that it was refused, here and when there is room again
			note(s.Fixture, &s.Fixture.revoked, use)
		}
	}
	limitMemory(t, redis, "0")
	s.AwaitRecovery()
	s.Finish()
}

// revocation is a call that revokes or ends something, and the calls that must be refused after it.
type revocation struct {
	revoke Request
	uses   []Request
}

// authority creates a family, a session and an agent, and returns a revocation of each.
func (s *Scenario) authority() []revocation {
	s.t.Helper()
	agent, doomed := s.Fixture.Agents[0], &Agent{}
	must(0, json.Unmarshal(s.callOK(s.Fixture.createAgent()), doomed))(s.t)
	doomed.Access = pairIn(s.callOK(exchange(doomed.ID, doomed.Secret))).Access
	family := pairIn(s.callOK(exchange(agent.ID, agent.Secret)))
	session, ofDoomed := s.openSession(agent.ID, time.Hour), s.openSession(doomed.ID, time.Hour)
	chargeFamily := ChargeSession(&Agent{Access: family.Access}, agent.Unkeyed, 1, 1)
	chargeAgent, chargeDoomed := ChargeSession(agent, session, 1, 1), ChargeSession(doomed, ofDoomed, 1, 1)
	for _, use := range []Request{chargeFamily, chargeAgent, chargeDoomed} { // they work before the revocation
		s.callOK(use)
	}

	of := func(kind Kind, subject, path string, body any) Request {
		return Request{Call: Call{Kind: kind, Subject: subject}, Method: http.MethodPost, Path: path, Body: body, APIKey: s.Fixture.APIKey}
	}
	ofFamily := of(Revoke, "family of "+nameOf(family.Refresh), "/v1/auth/revoke", object{"refresh_token": family.Refresh})
	ofFamily.APIKey, ofFamily.Token = "", agent.Access
	return []revocation{
		{ofFamily, []Request{refresh(family.Refresh), chargeFamily}},
		{of(End, "session "+session, "/sessions/"+session+"/end", nil), []Request{chargeAgent}},
		{of(Revoke, "agent "+doomed.ID, "/v1/agents/"+doomed.ID+"/revoke", nil),
			[]Request{exchange(doomed.ID, doomed.Secret), chargeDoomed}},
	}
}

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

func (s *Scenario) callOK(r Request) []byte {
	s.t.Helper()
	call, body := s.Caller.Do(s.Instances[0].URL, r)
	if call.Outcome != OK {
		s.t.Fatalf("%s: %d %s %s", r.Path, call.Status, call.Err, body)
	}
	return body
}
