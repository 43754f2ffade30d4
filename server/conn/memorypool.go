package conn

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// graceTime is how long a reservation in a full pool is safe from tenants that hold less than its own.
	graceTime = time.Second
	// sampledTenants is how many tenants are sampled by default, because there may be thousands.
	sampledTenants = 16
	// maxDisplaced is how many reservations one new reservation may displace: as many of the smallest make room for the
	// largest body.
	maxDisplaced = 128
	// maxScanned is how many of the oldest reservations are scanned for one that shares an address with the newcomer.
	maxScanned = 1024
)

// Pool bounds the bytes that request bodies, or responses, hold at once, and shares them fairly by bytes among
// tenants. (WaiterLimit shares places by number.) A tenant may hold at most half. In a full pool a new reservation
// displaces the oldest reservation of a tenant that holds many bytes, then any reservation older than graceTime.
// Organizations that share an address share that address's half in the same way. So no tenant can keep others out by
// holding memory, or by reserving it again and again.
type Pool struct {
	Most    int   // bytes
	sampled int   // how many tenants are sampled to find a large one
	errFull error // when the pool has no room
	errHalf error // when the tenant would have more than half of the pool

	mu       sync.Mutex
	sum      int                     // bytes of all reservations
	byTenant map[Tenant]*tenantUsage // without tenants that hold nothing
	order    list.List               // of *reservation: those that can be displaced, oldest first
}

// Tenant is what a reservation counts for: an organization or a client address.
type Tenant struct {
	Organization uuid.UUID
	Address      netip.Addr
}

// tenantUsage is what one tenant holds of a pool.
type tenantUsage struct {
	bytes int
	order list.List // of *reservation: those that can be displaced, oldest first
}

// Reservation is a number of bytes reserved in a pool. Nil reserves none.
type Reservation struct {
	pool      *Pool
	bytes     int
	tenants   []Tenant
	since     time.Time
	cut       func()        // aborts what holds the bytes, without waiting
	displaced bool          // it was aborted and no longer holds bytes
	inPool    *list.Element // nil when it cannot be displaced
	inTenant  *list.Element // of the first tenant
}

// NewPool returns a pool of so many bytes. It refuses with errFull without room, and with errHalf what would give a tenant more than half.
func NewPool(most int, errFull, errHalf error) *Pool {
	return &Pool{Most: most, sampled: sampledTenants, errFull: errFull, errHalf: errHalf, byTenant: map[Tenant]*tenantUsage{}}
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
	p.count(one, bytes)
	one.inPool = p.order.PushBack(one)
	one.inTenant = p.byTenant[tenants[0]].order.PushBack(one)
	return one, nil
}

// SetMost changes how many bytes the pool bounds. What is reserved stays.
func (p *Pool) SetMost(most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Most = most
}

// HeldLonger returns how many reservations that can be displaced are older than this.
func (p *Pool) HeldLonger(than time.Duration) (count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.order.Front(); e != nil; e = e.Next() {
		if time.Since(e.Value.(*Reservation).since) > than {
			count++
		}
	}
	return count
}

// Reserved returns how many bytes are reserved in all.
func (p *Pool) Reserved() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum
}

// Resize changes the size of the reservation. Without room it changes nothing and returns errHalf or errFull.
func (one *Reservation) Resize(bytes int, now time.Time) error {
	p := one.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.displaced {
		return p.errFull
	}
	if more := bytes - one.bytes; more > 0 {
		if err := p.makeRoom(more, now, one.tenants, one); err != nil {
			return err
		}
	}
	p.count(one, bytes-one.bytes)
	return nil
}

// Pin protects the reservation from being displaced.
func (one *Reservation) Pin() {
	if one == nil {
		return
	}
	one.pool.mu.Lock()
	defer one.pool.mu.Unlock()
	one.pool.unlist(one)
}

// Release returns the bytes to the pool, and reports whether the reservation was displaced. It may be called again.
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
	own := p.bytesOf(tenants[0]) + bytes
	if own > p.Most/2 {
		return p.errHalf
	}
	for _, shared := range tenants[1:] {
		if err := p.makeRoomWithin(shared, own, bytes, now, keep); err != nil {
			return err
		}
	}
	for range maxDisplaced {
		if p.sum+bytes <= p.Most {
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
		if p.bytesOf(shared)+bytes <= p.Most/2 {
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
	for at := p.order.Front(); at != nil && scanned < maxScanned; at = at.Next() {
		scanned++
		one := at.Value.(*Reservation)
		if one == keep || !slices.Contains(one.tenants[1:], shared) {
			continue
		}
		if p.bytesOf(one.tenants[0]) > own || now.Sub(one.since) > graceTime {
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

func (p *Pool) bytesOf(h Tenant) int {
	if s := p.byTenant[h]; s != nil {
		return s.bytes
	}
	return 0
}

// victim returns the reservation that a tenant with this many bytes may displace next, or nil.
func (p *Pool) victim(own int, now time.Time, keep *Reservation) *Reservation {
	var largest *tenantUsage
	sampled := 0
	for _, s := range p.byTenant { // in random order
		if s.order.Len() > 0 && (largest == nil || s.bytes > largest.bytes) {
			largest = s
		}
		if sampled++; sampled == p.sampled {
			break
		}
	}
	if largest != nil && largest.bytes > own {
		return largest.order.Front().Value.(*Reservation)
	}
	if oldest := p.order.Front(); oldest != nil {
		if one := oldest.Value.(*Reservation); one != keep && now.Sub(one.since) > graceTime {
			return one
		}
	}
	return nil
}

// count changes the size of a reservation by so many bytes.
func (p *Pool) count(one *Reservation, change int) {
	one.bytes += change
	p.sum += change
	for _, h := range one.tenants {
		s := p.byTenant[h]
		if s == nil {
			s = &tenantUsage{}
			p.byTenant[h] = s
		}
		s.bytes += change
	}
}

// remove takes a reservation out of the pool.
func (p *Pool) remove(one *Reservation) {
	p.unlist(one)
	p.count(one, -one.bytes)
	for _, h := range one.tenants {
		if s := p.byTenant[h]; s.bytes == 0 && s.order.Len() == 0 { // a place without bytes remains listed
			delete(p.byTenant, h)
		}
	}
}

// unlist takes a reservation out of those that can be displaced.
func (p *Pool) unlist(one *Reservation) {
	if one.inPool == nil {
		return
	}
	p.order.Remove(one.inPool)
	p.byTenant[one.tenants[0]].order.Remove(one.inTenant)
	one.inPool, one.inTenant = nil, nil
}
