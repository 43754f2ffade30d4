package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// awaitEvent waits until there may be an event, the time is over, the place is displaced or the server ends.
func (s *Server) awaitEvent(caller caller, from netip.Addr, agent uuid.UUID, q eventQuery) error {
	slot, err := s.waiters.acquire(caller.organization(), from)
	if err != nil {
		return err
	}
	defer slot.release()
	if err := s.awaitEventFor(slot.ctx, agent, q.after, caller.patience(q.wait)); err != nil {
		return err
	}
	if caller.hasExpired() {
		return errInvalidToken
	}
	return nil
}

// awaitEventFor is awaitEvent for who is counted already, and who wants it until ctx ends.
func (s *Server) awaitEventFor(ctx context.Context, agent uuid.UUID, after string, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.store.AwaitEvent(waiting, agent, after); err != waiting.Err() {
		return err
	}
	return nil
}
