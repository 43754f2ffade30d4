package conn

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// graceTime is how long a reservation in a full pool is safe from tenants that hold less than its own.
	graceTime = time.Second
	// maxDisplaced is how many reservations one new reservation may displace: as many of the smallest make room for the
	// largest body.
	maxDisplaced = 128
	// maxScanned is how many of the oldest reservations are scanned for one that shares an address with the newcomer.
	maxScanned = 1024
)

// Pool bounds what is held at once, in bytes or in places, and shares it fairly among tenants. It has the rules for the bytes of
// request bodies and responses; WaiterLimit has those for places. A tenant may hold at most half. In a full pool a new
// reservation displaces the oldest reservation of the tenant that holds most, then any reservation older than graceTime.
// Organizations that share an address share that address's half in the same way. So no tenant can keep others out by
// holding memory, or by reserving it again and again.
type Pool struct {
	Most    int   // bytes or places
	errFull error // when the pool has no room
	errHalf error // when the tenant would have more than half of the pool

	mu     sync.Mutex
	all    share             // of all tenants together
	shares map[Tenant]*share // without tenants that hold nothing
}

// Tenant is what a reservation counts for: an organization, a client address, or in a WaiterLimit an organization at an address.
type Tenant struct {
	Organization uuid.UUID
	Address      netip.Addr
}

// Reservation is a number of bytes or a place in a pool. Nil reserves none.
type Reservation struct {
	pool      *Pool
	size      int
	tenants   []Tenant
	since     time.Time
	cut       func()    // aborts what holds the reservation, without waiting
	displaced bool      // it was aborted and holds nothing more
	listed    []listing // nil when it cannot be displaced
}

// NewPool returns a pool of so many bytes. It refuses with errFull without room, and with errHalf what would give a tenant more than half.
func NewPool(most int, errFull, errHalf error) *Pool {
	return &Pool{Most: most, errFull: errFull, errHalf: errHalf, shares: map[Tenant]*share{}}
}

// Reserve returns a reservation, which the caller releases, or errHalf or errFull. It counts for each of the tenants; the
// first tenant's bytes decide whether it can be displaced. Displacing it calls cut.
func (p *Pool) Reserve(bytes int, now time.Time, cut func(), tenants ...Tenant) (*Reservation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.makeRoom(bytes, now, tenants, nil); err != nil {
		return nil, err
	}
	one := &Reservation{pool: p, tenants: tenants, since: now, cut: cut}
	p.enter(one, bytes, tenants[:1])
	return one, nil
}

// SetMost changes how much the pool bounds. What is reserved stays.
func (p *Pool) SetMost(most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Most = most
}

// HeldLonger returns how many reservations that can be displaced are older than this.
func (p *Pool) HeldLonger(than time.Duration) (count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.all.order.Front(); e != nil; e = e.Next() {
		if time.Since(e.Value.(*Reservation).since) > than {
			count++
		}
	}
	return count
}

// Reserved returns how much is reserved in all.
func (p *Pool) Reserved() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.size
}

// Resize changes the size of the reservation. Without room it changes nothing and returns errHalf or errFull.
func (one *Reservation) Resize(bytes int, now time.Time) error {
	p := one.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.displaced {
		return p.errFull
	}
	if more := bytes - one.size; more > 0 {
		if err := p.makeRoom(more, now, one.tenants, one); err != nil {
			return err
		}
	}
	p.count(one, bytes-one.size)
	return nil
}

// Pin protects the reservation from being displaced.
func (one *Reservation) Pin() {
	if one == nil {
		return
	}
	one.pool.mu.Lock()
	defer one.pool.mu.Unlock()
	one.unlist()
}

// Release returns the reservation to the pool, and reports whether the reservation was displaced. It may be called again.
func (one *Reservation) Release() (displaced bool) {
	if one == nil {
		return false
	}
	one.pool.mu.Lock()
	defer one.pool.mu.Unlock()
	one.pool.remove(one)
	return one.displaced
}

// makeRoom displaces reservations other than keep until there is room, as far as the tenants may.
func (p *Pool) makeRoom(bytes int, now time.Time, tenants []Tenant, keep *Reservation) error {
	own := p.sizeOf(tenants[0]) + bytes
	if own > p.Most/2 {
		return p.errHalf
	}
	for _, shared := range tenants[1:] {
		if err := p.makeRoomWithin(shared, own, bytes, now, keep); err != nil {
			return err
		}
	}
	for range maxDisplaced {
		if p.all.size+bytes <= p.Most {
			return nil
		}
		victim := p.victim(own, now, keep)
		if victim == nil {
			return p.errFull
		}
		p.displace(victim)
	}
	return p.errFull
}

// makeRoomWithin is makeRoom within the half of a tenant that several share, such as an address with several organizations.
func (p *Pool) makeRoomWithin(shared Tenant, own, bytes int, now time.Time, keep *Reservation) error {
	for range maxDisplaced {
		if p.sizeOf(shared)+bytes <= p.Most/2 {
			return nil
		}
		victim := p.victimWithin(shared, own, now, keep)
		if victim == nil {
			return p.errHalf
		}
		p.displace(victim)
	}
	return p.errHalf
}

// victimWithin returns the oldest reservation there that a tenant with this many bytes may displace, or nil. It scans only
// the oldest ones.
func (p *Pool) victimWithin(shared Tenant, own int, now time.Time, keep *Reservation) *Reservation {
	scanned := 0
	for at := p.all.order.Front(); at != nil && scanned < maxScanned; at = at.Next() {
		scanned++
		one := at.Value.(*Reservation)
		if one == keep || !slices.Contains(one.tenants[1:], shared) {
			continue
		}
		if p.sizeOf(one.tenants[0]) > own || now.Sub(one.since) > graceTime {
			return one
		}
	}
	return nil
}

func (p *Pool) displace(victim *Reservation) {
	victim.displaced = true
	p.remove(victim)
	victim.cut()
}

func (p *Pool) sizeOf(t Tenant) int {
	if s := p.shares[t]; s != nil {
		return s.size
	}
	return 0
}

// victim returns the reservation that a tenant with this many bytes may displace next, or nil.
func (p *Pool) victim(own int, now time.Time, keep *Reservation) *Reservation {
	if largest := p.all.within.largest(); largest.weight() > own {
		return largest.order.Front().Value.(*Reservation)
	}
	if oldest := p.all.order.Front(); oldest != nil {
		if one := oldest.Value.(*Reservation); one != keep && now.Sub(one.since) > graceTime {
			return one
		}
	}
	return nil
}
