package server

import (
	"container/list"
	"context"
	"net/netip"
	"sync"

	"github.com/google/uuid"
)

// maxWaiting is how many requests may wait for events, streams included.
const maxWaiting = 4096

// waiting holds the places of requests that wait for events, and ends them with the server.
//
// Organizations and client addresses share the places fairly: neither may hold more than half of them. When all are taken,
// a newcomer displaces the newest place of the organization or address that holds most, unless its own organization or
// address would then hold as many. The organizations of one address share that address's places in the same way.
type waiting struct {
	ctx context.Context
	end context.CancelFunc

	mu            sync.Mutex
	most          int // places
	total         int
	organizations holders[uuid.UUID]
	addresses     holders[netip.Addr]
	pairs         holders[organizationAt]
}

// organizationAt is an organization at an address.
type organizationAt struct {
	organization uuid.UUID
	address      netip.Addr
}

// place is held by one request that waits.
type place struct {
	ctx   context.Context // ends with the server, and when the place is displaced
	end   context.CancelFunc
	in    *waiting
	of    organizationAt
	seats []seat // none once it was left
}

// seat is a place's entry in one of its holders.
type seat struct {
	holder *holder
	entry  *list.Element
}

func newWaiting(most int) *waiting {
	ctx, end := context.WithCancel(context.Background())
	return &waiting{ctx: ctx, end: end, most: most}
}

// enter takes a place for an organization at an address. An invalid address counts for nobody: it is a trusted proxy's, or
// none of IP. Errors: errOwnWaiting, errAddressWaiting, errManyWaiting.
func (w *waiting) enter(organization uuid.UUID, address netip.Addr) (*place, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := max(w.most/2, 1)
	switch {
	case w.organizations.size(organization) >= most:
		return nil, errOwnWaiting
	case w.addresses.size(address) >= most:
		return nil, errAddressWaiting
	case w.total >= w.most && !w.makeRoom(organizationAt{organization, address}):
		return nil, errManyWaiting
	}
	p := &place{in: w, of: organizationAt{organization, address}}
	p.ctx, p.end = context.WithCancel(w.ctx)
	w.total++
	p.sit(w.organizations.of(organization, &w.organizations.ranks))
	if address.IsValid() {
		at := w.addresses.of(address, &w.addresses.ranks)
		p.sit(at)
		p.sit(w.pairs.of(p.of, &at.within))
	}
	return p, nil
}

// makeRoom displaces the newest place of whoever holds more than the newcomer would, and says whether there was one.
func (w *waiting) makeRoom(newcomer organizationAt) bool {
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

func (w *waiting) displace(from *holder) {
	newest := from.places.Back().Value.(*place)
	newest.end()
	w.remove(newest)
}

func (w *waiting) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

// leave gives the place free. A place that was displaced is free already.
func (p *place) leave() {
	p.end()
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.remove(p)
}

func (w *waiting) remove(p *place) {
	if p.seats == nil {
		return
	}
	w.total--
	for _, s := range p.seats {
		s.holder.remove(s.entry)
	}
	p.seats = nil
	w.organizations.forgetEmpty(p.of.organization)
	w.pairs.forgetEmpty(p.of)
	w.addresses.forgetEmpty(p.of.address)
}

func (p *place) sit(in *holder) { p.seats = append(p.seats, seat{in, in.add(p)}) }
