package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"remit/server/internal/access"
)

// awaitEvent waits for an event until the time is over, the slot is displaced or the server stops. It may return without an
// event.
func (s *Server) awaitEvent(caller access.Caller, from netip.Addr, agent uuid.UUID, q eventQuery) error {
	slot, err := s.waiters.Acquire(caller.OrganizationID(), from)
	if err != nil {
		return err
	}
	defer slot.Release()
	if err := s.awaitEventFor(slot.Context(), agent, q.after, caller.Patience(q.wait)); err != nil {
		return err
	}
	if caller.HasExpired() {
		return access.ErrInvalidToken
	}
	return nil
}

// awaitEventFor is awaitEvent for a request that holds a slot already. It ends with ctx.
func (s *Server) awaitEventFor(ctx context.Context, agent uuid.UUID, after string, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.store.AwaitEvent(bounded, agent, after); err != bounded.Err() {
		return err
	}
	return nil
}
