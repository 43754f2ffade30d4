package records

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// awaitEvent waits for an event until the time is over, the slot is displaced or the server stops. It may return without an
// event.
func (h *Handlers) awaitEvent(caller access.Caller, from netip.Addr, agent uuid.UUID, q EventQuery) error {
	slot, err := h.Front.Waiters.Acquire(caller.OrganizationID(), from)
	if err != nil {
		return err
	}
	defer slot.Release()
	if err := h.awaitEventFor(slot.Context(), agent, q.After, caller.Patience(q.Wait)); err != nil {
		return err
	}
	if caller.HasExpired() {
		return access.ErrInvalidToken
	}
	return nil
}

// awaitEventFor is awaitEvent for a request that holds a slot already. It ends with ctx.
func (h *Handlers) awaitEventFor(ctx context.Context, agent uuid.UUID, after string, patience time.Duration) error {
	return web.Await(ctx, patience, func(ctx context.Context) error { return h.Store.AwaitEvent(ctx, agent, after) })
}
