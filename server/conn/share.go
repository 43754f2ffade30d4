package conn

import (
	"container/heap"
	"container/list"

	"github.com/google/uuid"
)

// share is what one tenant holds of a pool, or all together.
type share struct {
	tenant Tenant
	size   int
	order  list.List // of *Reservation: those that can be displaced, oldest first
	within ranking   // of the shares in this one: of all tenants, or at an address of its organizations
	ranks  *ranking  // that has this share; nil for that of all
	rank   int       // its index there
}

// listing is the place of a reservation in the order of a share.
type listing struct {
	in    *share
	entry *list.Element
}

// enter counts a reservation for its tenants. It can be displaced for those given.
func (p *Pool) enter(one *Reservation, size int, listed []Tenant) {
	one.list(&p.all)
	for _, t := range listed {
		one.list(p.shareOf(t))
	}
	p.count(one, size)
}

// count changes the size of a reservation.
func (p *Pool) count(one *Reservation, change int) {
	one.size += change
	p.all.grow(change)
	for _, t := range one.tenants {
		p.shareOf(t).grow(change)
	}
}

// remove takes a reservation out of the pool.
func (p *Pool) remove(one *Reservation) {
	one.unlist()
	p.count(one, -one.size)
	for _, t := range one.tenants {
		if s := p.shares[t]; s.size == 0 && s.order.Len() == 0 { // a reservation of 0 bytes remains listed
			heap.Remove(s.ranks, s.rank)
			delete(p.shares, t)
		}
	}
}

// shareOf returns the share of a tenant, a new one if it holds nothing yet.
func (p *Pool) shareOf(t Tenant) *share {
	known := p.shares[t]
	if known == nil {
		known = &share{tenant: t, ranks: &p.all.within}
		if t.Organization != uuid.Nil && t.Address.IsValid() {
			known.ranks = &p.shareOf(Tenant{Address: t.Address}).within
		}
		p.shares[t] = known
		heap.Push(known.ranks, known)
	}
	return known
}

// list adds the reservation to those of a share that can be displaced.
func (one *Reservation) list(in *share) {
	one.listed = append(one.listed, listing{in, in.order.PushBack(one)})
	in.grow(0)
}

// unlist takes it from all of these.
func (one *Reservation) unlist() {
	for _, l := range one.listed {
		l.in.order.Remove(l.entry)
		l.in.grow(0)
	}
	one.listed = nil
}

// grow resizes a share and ranks it again; by 0 after its order has changed.
func (s *share) grow(change int) {
	if s.size += change; s.ranks != nil {
		heap.Fix(s.ranks, s.rank)
	}
}

// weight is the size of a share of which something can be displaced, and 0 for any other and for none.
func (s *share) weight() int {
	if s == nil || s.order.Len() == 0 {
		return 0
	}
	return s.size
}

// ranking is a heap of shares: the one of most weight first, and of two with the same an address before an organization.
type ranking []*share

// largest returns one of the largest shares, nil when there is none.
func (r ranking) largest() *share {
	if len(r) == 0 {
		return nil
	}
	return r[0]
}

// Len implements heap.Interface, as the next four do.
func (r ranking) Len() int { return len(r) }

func (r ranking) Less(i, j int) bool {
	if a, b := r[i].weight(), r[j].weight(); a != b {
		return a > b
	}
	return r[i].tenant.Organization == uuid.Nil && r[j].tenant.Organization != uuid.Nil
}

func (r ranking) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].rank, r[j].rank = i, j
}

func (r *ranking) Push(s any) {
	s.(*share).rank = len(*r)
	*r = append(*r, s.(*share))
}

func (r *ranking) Pop() any {
	last := len(*r) - 1
	s := (*r)[last]
	(*r)[last] = nil // for the garbage collector
	*r = (*r)[:last]
	return s
}
