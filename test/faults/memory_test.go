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
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
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
	if err := r.Client().ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
		t.Fatal(err)
	}
}

// An organization that has filled Redis must be stoppable, so revoking and ending still work.
func TestFullRedisStillRevokesAndEnds(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
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
	_, body := s.Caller.Do(s.Instances[0].URL, s.Fixture.createAgent())
	var created struct{ ID, Secret string }
	if err := json.Unmarshal(body, &created); err != nil {
		s.t.Fatal(err)
	}
	_, body = s.Caller.Do(s.Instances[0].URL, exchange(created.ID, created.Secret))
	doomed.ID, doomed.Secret, doomed.Access = created.ID, created.Secret, pairIn(body).Access
	_, body = s.Caller.Do(s.Instances[0].URL, exchange(agent.ID, agent.Secret))
	family := pairIn(body)
	session, ofDoomed := s.openSession(agent.ID, time.Hour), s.openSession(doomed.ID, time.Hour)
	chargeFamily := ChargeSession(&Agent{Access: family.Access}, agent.Unkeyed, 1, 1)
	chargeAgent, chargeDoomed := ChargeSession(agent, session, 1, 1), ChargeSession(doomed, ofDoomed, 1, 1)
	for _, use := range []Request{chargeFamily, chargeAgent, chargeDoomed} { // they work before the revocation
		if call, body := s.Caller.Do(s.Instances[0].URL, use); call.Outcome != OK {
			s.t.Fatalf("before the revocation: %d %s", call.Status, body)
		}
	}

	of := func(kind Kind, subject, path string, body any) Request {
		r := Request{Call: Call{Kind: kind, Subject: subject}, Method: http.MethodPost, Path: path, Body: body}
		if body == nil {
			r.APIKey = s.Fixture.APIKey
		} else {
			r.Token = agent.Access
		}
		return r
	}
	return []revocation{
		{of(Revoke, "family of "+nameOf(family.Refresh), "/v1/auth/revoke", object{"refresh_token": family.Refresh}),
			[]Request{refresh(family.Refresh), chargeFamily}},
		{of(End, "session "+session, "/sessions/"+session+"/end", nil), []Request{chargeAgent}},
		{of(Revoke, "agent "+doomed.ID, "/v1/agents/"+doomed.ID+"/revoke", nil),
			[]Request{exchange(doomed.ID, doomed.Secret), chargeDoomed}},
	}
}
