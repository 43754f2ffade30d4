package main

import (
	"context"
	"remit/client"
	"remit/money"
	"sync"
)

// session is one session of an agent, with the client's ledger of it.
type session struct {
	sdk    *client.Session
	agent  *agent
	limits limits
	lease  *client.Lease // only in the leased scenario
	ledger ledger
}

// does returns the SDK call for an action on the session.
func (s *session) does(a action) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.sdk.Charge(ctx, client.Charge{ActionType: a.kind, Value: a.requested.value, Count: a.requested.count})
		return err
	}
}

// get reads the session.
func (s *session) get(ctx context.Context) error {
	_, err := s.sdk.Get(ctx)
	return err
}

// startedLimits are the limits of a session created during a run, which is charged once.
var startedLimits = limits{actions: 100, value: 1000 * money.USD}

// startedSessions are the sessions created during a run. It is safe for concurrent use.
type startedSessions struct {
	mu   sync.Mutex
	made int
	open []*session // oldest first

	ended int     // how many have ended
	sums  entries // their ledgers
}

// reserve reports whether another session may be created, and counts it.
func (s *startedSessions) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made >= maxStarted {
		return false
	}
	s.made++
	return true
}

func (s *startedSessions) push(it *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, it)
}

// pop removes and returns the oldest open session, or nil.
func (s *startedSessions) pop() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		return nil
	}
	oldest := s.open[0]
	s.open = s.open[1:]
	return oldest
}

// take removes and returns all open sessions.
func (s *startedSessions) take() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.open
	s.open = nil
	return rest
}

// enter adds the ledger of a session that has ended.
func (s *startedSessions) enter(sums entries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	s.sums = s.sums.plus(sums)
}
