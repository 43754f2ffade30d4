package main

import (
	"context"
	"remit/client"
	"remit/money"
	"sync"
)

// session is one session of an agent, and the client's account of it.
type session struct {
	sdk    *client.Session
	agent  *agent
	limits limits
	ledger ledger
}

// does is the SDK's call for an action on the session.
func (s *session) does(a action) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.sdk.Charge(ctx, client.Charge{ActionType: a.kind, Value: money.MicroUSD(a.requested.value), Count: a.requested.count})
		return err
	}
}

// get reads the session.
func (s *session) get(ctx context.Context) error {
	_, err := s.sdk.Get(ctx)
	return err
}

// startedLimits are those of a session that is made during a run. It is charged once.
var startedLimits = limits{actions: 100, value: 1000 * microsPerUSD}

// startedSessions are those that were made during a run. Safe for use by many workers.
type startedSessions struct {
	mu   sync.Mutex
	made int
	open []*session // oldest first

	ended int     // of those made
	sums  entries // of the ended ones
}

// reserve reports whether one more may be made.
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

// pop takes the oldest open one; nil when there is none.
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

// take takes all that are open.
func (s *startedSessions) take() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.open
	s.open = nil
	return rest
}

// enter enters the account of one that has ended.
func (s *startedSessions) enter(sums entries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	s.sums = s.sums.plus(sums)
}
