package conn

import (
	"container/list"
	"context"
	"errors"
	"net/netip"
	"sync"

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

// WaiterLimit bounds the requests that wait for events, shares its slots fairly by number, and ends all waiters with the
// server. (Pool shares memory by bytes.)
//
// Neither an organization nor a client address may hold more than half of the slots. When all are taken, a newcomer
// displaces the newest slot of the organization or address that holds most, unless its own organization or address would
// then hold as many. The organizations of one address share that address's slots in the same way.
type WaiterLimit struct {
	ctx context.Context
	end context.CancelFunc

	mu            sync.Mutex
	most          int // slots
	total         int
	organizations shares[uuid.UUID]
	addresses     shares[netip.Addr]
	pairs         shares[tenantAt]
}

// tenantAt is an organization at an address.
type tenantAt struct {
	organization uuid.UUID
	address      netip.Addr
}

// Slot is held by one waiting request.
type Slot struct {
	ctx     context.Context
	End     context.CancelFunc
	in      *WaiterLimit
	of      tenantAt
	entries []shareEntry // nil after its release
}

// shareEntry is the place of a slot in one of the shares that it counts for.
type shareEntry struct {
	share *share
	entry *list.Element
}

// NewWaiterLimit returns a limit of so many slots.
func NewWaiterLimit(most int) *WaiterLimit {
	ctx, end := context.WithCancel(context.Background())
	return &WaiterLimit{ctx: ctx, end: end, most: most}
}

// SetMost changes how many slots there are.
func (w *WaiterLimit) SetMost(most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = most
}

// Acquire takes a slot for an organization at an address. An invalid address does not count: it belongs to a trusted proxy
// or is not an IP address. Errors: ErrOwnWaiting, ErrAddressWaiting, ErrManyWaiting.
func (w *WaiterLimit) Acquire(organization uuid.UUID, address netip.Addr) (*Slot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := max(w.most/2, 1)
	switch {
	case w.organizations.size(organization) >= most:
		return nil, ErrOwnWaiting
	case w.addresses.size(address) >= most:
		return nil, ErrAddressWaiting
	case w.total >= w.most && !w.makeRoom(tenantAt{organization, address}):
		return nil, ErrManyWaiting
	}
	p := &Slot{in: w, of: tenantAt{organization, address}}
	p.ctx, p.End = context.WithCancel(w.ctx)
	w.total++
	p.join(w.organizations.of(organization, &w.organizations.ranks))
	if address.IsValid() {
		at := w.addresses.of(address, &w.addresses.ranks)
		p.join(at)
		p.join(w.pairs.of(p.of, &at.within))
	}
	return p, nil
}

// makeRoom displaces the newest slot of the largest share that is larger than the newcomer's would be, and reports whether
// there was one.
func (w *WaiterLimit) makeRoom(newcomer tenantAt) bool {
	organization, address := w.organizations.ranks.largest(), w.addresses.ranks.largest()
	own := max(w.organizations.size(newcomer.organization), w.addresses.size(newcomer.address)) + 1
	switch {
	case address.size() >= organization.size() && address.size() > own:
		w.displace(address.within.largest())
	case organization.size() > own:
		w.displace(organization)
	default:
		at := w.addresses.byKey[newcomer.address]
		if at == nil || at.within.largest().size() <= w.pairs.size(newcomer)+1 {
			return false
		}
		w.displace(at.within.largest())
	}
	return true
}

func (w *WaiterLimit) displace(from *share) {
	newest := from.waiters.Back().Value.(*Slot)
	newest.End()
	w.remove(newest)
}

// Stop ends all waiters, and those that come later.
func (w *WaiterLimit) Stop() { w.end() }

// Stopping is closed once the waiters are ended.
func (w *WaiterLimit) Stopping() <-chan struct{} { return w.ctx.Done() }

// Context ends with the server, and when the slot is displaced.
func (p *Slot) Context() context.Context { return p.ctx }

// Len returns how many slots are taken.
func (w *WaiterLimit) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// Release frees the slot. A displaced slot is free already.
func (p *Slot) Release() {
	p.End()
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.remove(p)
}

func (w *WaiterLimit) remove(p *Slot) {
	if p.entries == nil {
		return
	}
	w.total--
	for _, s := range p.entries {
		s.share.remove(s.entry)
	}
	p.entries = nil
	w.organizations.forgetEmpty(p.of.organization)
	w.pairs.forgetEmpty(p.of)
	w.addresses.forgetEmpty(p.of.address)
}

func (p *Slot) join(in *share) { p.entries = append(p.entries, shareEntry{in, in.add(p)}) }
