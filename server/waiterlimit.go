package server

import (
	"container/list"
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/google/uuid"
)

// maxWaiters is how many requests may wait for events, streams included.
const maxWaiters = 4096

// What acquire refuses with.
var (
	errManyWaiting    = errors.New("too many requests are waiting for events or decisions")
	errOwnWaiting     = errors.New("too many requests of your organization are waiting for events or decisions")
	errAddressWaiting = errors.New("too many requests from your address are waiting for events or decisions")
)

// waiterLimit bounds the requests that wait for events, shares its slots fairly by number, and ends all waiters with the
// server. (memoryPool shares memory by bytes.)
//
// Neither an organization nor a client address may hold more than half of the slots. When all are taken, a newcomer
// displaces the newest slot of the organization or address that holds most, unless its own organization or address would
// then hold as many. The organizations of one address share that address's slots in the same way.
type waiterLimit struct {
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

// slot is held by one waiting request.
type slot struct {
	ctx     context.Context // ends with the server, and when the slot is displaced
	end     context.CancelFunc
	in      *waiterLimit
	of      tenantAt
	entries []shareEntry // nil after its release
}

// shareEntry is the place of a slot in one of the shares that it counts for.
type shareEntry struct {
	share *share
	entry *list.Element
}

func newWaiterLimit(most int) *waiterLimit {
	ctx, end := context.WithCancel(context.Background())
	return &waiterLimit{ctx: ctx, end: end, most: most}
}

// acquire takes a slot for an organization at an address. An invalid address does not count: it belongs to a trusted proxy
// or is not an IP address. Errors: errOwnWaiting, errAddressWaiting, errManyWaiting.
func (w *waiterLimit) acquire(organization uuid.UUID, address netip.Addr) (*slot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := max(w.most/2, 1)
	switch {
	case w.organizations.size(organization) >= most:
		return nil, errOwnWaiting
	case w.addresses.size(address) >= most:
		return nil, errAddressWaiting
	case w.total >= w.most && !w.makeRoom(tenantAt{organization, address}):
		return nil, errManyWaiting
	}
	p := &slot{in: w, of: tenantAt{organization, address}}
	p.ctx, p.end = context.WithCancel(w.ctx)
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
func (w *waiterLimit) makeRoom(newcomer tenantAt) bool {
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

func (w *waiterLimit) displace(from *share) {
	newest := from.waiters.Back().Value.(*slot)
	newest.end()
	w.remove(newest)
}

func (w *waiterLimit) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// release frees the slot. A displaced slot is free already.
func (p *slot) release() {
	p.end()
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.remove(p)
}

func (w *waiterLimit) remove(p *slot) {
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

func (p *slot) join(in *share) { p.entries = append(p.entries, shareEntry{in, in.add(p)}) }
