//go:build long

package faults

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"remit/internal/redisproc"
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
