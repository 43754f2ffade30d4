package conn

import (
	"context"
	"errors"
	"net/netip"

	"github.com/google/uuid"
)

// MaxWaiters is how many requests may wait for events, streams included.
const MaxWaiters = 4096

// What Acquire refuses with.
var (
	ErrManyWaiting    = errors.New("too many requests are waiting for events or decisions")
	ErrOwnWaiting     = errors.New("too many requests of your organization are waiting for events or decisions")
	ErrAddressWaiting = errors.New("too many requests from your address are waiting for events or decisions")
)

// WaiterLimit bounds the requests that wait for events, in a Pool whose reservations are slots of size 1, and ends all waiters with
// the server.
//
// Neither an organization nor a client address may hold more than half of the slots. When all are taken, a newcomer
// displaces the newest slot of the organization or address that holds most, unless its own organization or address would
// then hold as many. The organizations of one address share that address's slots in the same way.
type WaiterLimit struct {
	ctx   context.Context
	end   context.CancelFunc
	slots *Pool
}

// Slot is held by one waiting request.
type Slot struct {
	ctx  context.Context
	End  context.CancelFunc
	held Reservation
}

// NewWaiterLimit returns a limit of so many slots.
func NewWaiterLimit(most int) *WaiterLimit {
	ctx, end := context.WithCancel(context.Background())
	return &WaiterLimit{ctx: ctx, end: end, slots: NewPool(most, ErrManyWaiting, ErrOwnWaiting)}
}

// SetMost changes how many slots there are.
func (w *WaiterLimit) SetMost(most int) { w.slots.SetMost(most) }

// Acquire takes a slot for an organization at an address. An invalid address does not count: it belongs to a trusted proxy
// or is not an IP address. Errors: ErrOwnWaiting, ErrAddressWaiting, ErrManyWaiting.
func (w *WaiterLimit) Acquire(organization uuid.UUID, address netip.Addr) (*Slot, error) {
	tenants := []Tenant{{Organization: organization}, {Address: address}, {organization, address}}
	switch {
	case !address.IsValid():
		tenants = tenants[:1]
	case organization == uuid.Nil: // the last would be the one before
		tenants = tenants[:2]
	}
	p := w.slots
	p.mu.Lock()
	defer p.mu.Unlock()
	most := max(p.Most/2, 1)
	switch {
	case p.sizeOf(tenants[0]) >= most:
		return nil, ErrOwnWaiting
	case len(tenants) > 1 && p.sizeOf(tenants[1]) >= most:
		return nil, ErrAddressWaiting
	case p.all.size >= p.Most && !p.makeSlot(tenants):
		return nil, ErrManyWaiting
	}
	slot := &Slot{held: Reservation{pool: p, tenants: tenants}}
	slot.ctx, slot.End = context.WithCancel(w.ctx)
	slot.held.cut = slot.End
	p.enter(&slot.held, 1, tenants)
	return slot, nil
}

// makeSlot displaces the newest slot of the largest share that is larger than the newcomer's would be, and reports whether
// there was one. At an address it is the largest organization's.
func (p *Pool) makeSlot(newcomer []Tenant) bool {
	own := p.sizeOf(newcomer[0]) + 1
	for _, t := range newcomer[1:] {
		own = max(own, p.sizeOf(t)+1)
	}
	from := p.all.within.largest()
	if from.weight() <= own {
		if len(newcomer) == 1 {
			return false
		}
		at := p.shares[newcomer[1]]
		if at == nil || at.within.largest().weight() <= p.sizeOf(newcomer[2])+1 {
			return false
		}
		from = at
	}
	if len(from.within) > 0 {
		from = from.within.largest()
	}
	p.displace(from.order.Back().Value.(*Reservation))
	return true
}

// Stop ends all waiters, and those that come later.
func (w *WaiterLimit) Stop() { w.end() }

// Stopping is closed once the waiters are ended.
func (w *WaiterLimit) Stopping() <-chan struct{} { return w.ctx.Done() }

// Context ends with the server, and when the slot is displaced.
func (s *Slot) Context() context.Context { return s.ctx }

// Len returns how many slots are taken.
func (w *WaiterLimit) Len() int { return w.slots.Reserved() }

// Release frees the slot. A displaced slot is free already.
func (s *Slot) Release() {
	s.End()
	s.held.Release()
}
