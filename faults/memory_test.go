package faults

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"remit/redisproc"
)

// A full Redis refuses writes before their first, so 503 unavailable is the truth.
func TestAFullRedisRefusesWritesAndLetsReadsGoOn(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for range rounds(1) {
		limitMemory(t, redis, "1mb") // less than an empty Redis uses
		s.refusesWritesAndReads()
		limitMemory(t, redis, "0") // no limit
		s.FaultOver()
		s.Acknowledged(100)
	}
	s.Finish()
}

func limitMemory(t *testing.T, r *Redis, limit string) {
	t.Helper()
	if err := r.Client().ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
		t.Fatal(err)
	}
}

// Who has filled Redis must be stopped: what takes authority away goes on.
func TestAFullRedisStillRevokesAndEnds(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	takings := s.authority()
	limitMemory(t, redis, "1mb")
	s.awaitRefusal("unavailable")
	for n, taking := range takings {
		at := s.Instances[n%len(s.Instances)].URL
		if call, body := s.Caller.Do(at, taking.take); call.Outcome != OK {
			t.Errorf("%s: %d %s", call.Subject, call.Status, body)
		}
		for _, use := range taking.uses {
			use.Kind, use.Subject, use.Note = Use, taking.take.Subject, nothing
			s.Caller.Do(at, use) // Finish looks at what came of it, here and when there is room again
			s.World.keepDead([]Request{use})
		}
	}
	limitMemory(t, redis, "0")
	s.FaultOver()
	s.Finish()
}

// taking is a call that takes authority away, and uses that must be refused from then on.
type taking struct {
	take Request
	uses []Request
}

// authority gives some, and returns how each can be taken away: a family's, a session's and an agent's.
func (s *Scenario) authority() []taking {
	s.t.Helper()
	holder, mortal := s.World.Agents[0], &Agent{}
	_, body := s.Caller.Do(s.Instances[0].URL, s.World.createAgent())
	var created struct{ ID, Secret string }
	if err := json.Unmarshal(body, &created); err != nil {
		s.t.Fatal(err)
	}
	_, body = s.Caller.Do(s.Instances[0].URL, exchange(created.ID, created.Secret))
	mortal.ID, mortal.Secret, mortal.Access = created.ID, created.Secret, pairIn(body).Access
	_, body = s.Caller.Do(s.Instances[0].URL, exchange(holder.ID, holder.Secret))
	family := pairIn(body)
	session, mortals := s.openSession(holder.ID, time.Hour), s.openSession(mortal.ID, time.Hour)
	ofFamily := ChargeSession(&Agent{Access: family.Access}, holder.Unkeyed, 1, 1)
	ofHolder, ofMortal := ChargeSession(holder, session, 1, 1), ChargeSession(mortal, mortals, 1, 1)
	for _, use := range []Request{ofFamily, ofHolder, ofMortal} { // they are of use until then
		if call, body := s.Caller.Do(s.Instances[0].URL, use); call.Outcome != OK {
			s.t.Fatalf("before it is taken away: %d %s", call.Status, body)
		}
	}

	of := func(kind Kind, subject, path string, body any) Request {
		r := Request{Call: Call{Kind: kind, Subject: subject}, Method: http.MethodPost, Path: path, Body: body}
		if body == nil {
			r.APIKey = s.World.APIKey
		} else {
			r.Token = holder.Access
		}
		return r
	}
	return []taking{
		{of(Revoke, "family of "+nameOf(family.Refresh), "/v1/auth/revoke", object{"refresh_token": family.Refresh}),
			[]Request{refresh(family.Refresh), ofFamily}},
		{of(End, "session "+session, "/sessions/"+session+"/end", nil), []Request{ofHolder}},
		{of(Revoke, "agent "+mortal.ID, "/v1/agents/"+mortal.ID+"/revoke", nil),
			[]Request{exchange(mortal.ID, mortal.Secret), ofMortal}},
	}
}
