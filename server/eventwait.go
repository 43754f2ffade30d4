package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"
)

// awaitEvent waits until there may be an event, the time is over, the place is displaced or the server ends.
func (s *Server) awaitEvent(asks caller, from netip.Addr, agent uuid.UUID, q eventQuery) error {
	place, err := s.waiting.enter(asks.organization(), from)
	if err != nil {
		return err
	}
	defer place.leave()
	if err := s.awaitEventFor(place.ctx, agent, q.after, asks.patience(q.wait)); err != nil {
		return err
	}
	if asks.hasExpired() {
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
