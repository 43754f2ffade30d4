package server

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// graceTime is how long a place in a full pool is safe from holders that have less than its own.
	graceTime = time.Second
	// sampledHolders is among how many holders the largest is sought: there may be thousands.
	sampledHolders = 16
	// maxDisplaced is how many places one reservation may displace: so many of the smallest make room for the largest body.
	maxDisplaced = 128
	// maxLooked is among how many of the oldest reservations one is sought that shares an address with the newcomer.
	maxLooked = 1024
)

// pool bounds the bytes that request bodies, or answers, hold at once. A holder gets at most half of them. When the pool is
// full, a reservation displaces places of the holder with the most bytes, then any place older than graceTime. The same goes
// for the half of an address among the organizations that share it. So nobody keeps others out by holding places, or by
// reserving them again and again.
type pool struct {
	most    int   // bytes
	errFull error // refuses when the pool has no room
	errHalf error // refuses when the holder has half of the pool

	mu    sync.Mutex
	sum   int                 // bytes of all places
	held  map[account]*shares // without holders of nothing
	order list.List           // of *reservation: those that can be displaced, oldest first
}

// account is whom a place counts for: an organization or a client address.
type account struct {
	organization uuid.UUID
	address      netip.Addr
}

// shares is what one holder has of a pool.
type shares struct {
	bytes int
	order list.List // of *reservation: those that can be displaced, oldest first
}

// reservation is a part of a pool that is reserved. Nil is none.
type reservation struct {
	pool      *pool
	bytes     int
	holders   []account
	since     time.Time
	cut       func()        // ends what holds the bytes, without waiting for it
	displaced bool          // it was cut, and has no bytes any more
	inPool    *list.Element // nil when the place cannot be displaced
	inShares  *list.Element // of the first holder
}

func newPool(most int, errFull, errHalf error) *pool {
	return &pool{most: most, errFull: errFull, errHalf: errHalf, held: map[account]*shares{}}
}

// reserve returns a place, which the caller releases, or errHalf or errFull. The place counts for each of the holders and
// is displaced when it is the first one's turn.
func (p *pool) reserve(bytes int, now time.Time, cut func(), holders ...account) (*reservation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.makeRoom(bytes, now, holders, nil); err != nil {
		return nil, err
	}
	one := &reservation{pool: p, holders: holders, since: now, cut: cut}
	p.count(one, bytes)
	one.inPool = p.order.PushBack(one)
	one.inShares = p.held[holders[0]].order.PushBack(one)
	return one, nil
}

// resize changes how many bytes the place has. When there is no room it changes nothing and returns errHalf or errFull.
func (one *reservation) resize(bytes int, now time.Time) error {
	p := one.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.displaced {
		return p.errFull
	}
	if more := bytes - one.bytes; more > 0 {
		if err := p.makeRoom(more, now, one.holders, one); err != nil {
			return err
		}
	}
	p.count(one, bytes-one.bytes)
	return nil
}

// settle makes sure that the place is not displaced from now on.
func (one *reservation) settle() {
	if one == nil {
		return
	}
	one.pool.mu.Lock()
	defer one.pool.mu.Unlock()
	one.pool.unlist(one)
}

// release gives the bytes back, and says whether the place was displaced. It may be called again.
func (one *reservation) release() (displaced bool) {
	if one == nil {
		return false
	}
	one.pool.mu.Lock()
	defer one.pool.mu.Unlock()
	one.pool.remove(one)
	return one.displaced
}

// makeRoom displaces other places than keep as far as it must and may.
func (p *pool) makeRoom(bytes int, now time.Time, holders []account, keep *reservation) error {
	own := p.bytesOf(holders[0]) + bytes
	if own > p.most/2 {
		return p.errHalf
	}
	for _, shared := range holders[1:] {
		if err := p.makeRoomWithin(shared, own, bytes, now, keep); err != nil {
			return err
		}
	}
	for range maxDisplaced {
		if p.sum+bytes <= p.most {
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

// makeRoomWithin does the same in the half of a holder that several share, as organizations do the address they come from:
// none of them keeps the others out.
func (p *pool) makeRoomWithin(shared account, own, bytes int, now time.Time, keep *reservation) error {
	for range maxDisplaced {
		if p.bytesOf(shared)+bytes <= p.most/2 {
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

// victimWithin returns the oldest reservation there that a holder which is to have so many bytes may displace, or nil. It
// looks at the oldest ones only.
func (p *pool) victimWithin(shared account, own int, now time.Time, keep *reservation) *reservation {
	looked := 0
	for at := p.order.Front(); at != nil && looked < maxLooked; at = at.Next() {
		looked++
		one := at.Value.(*reservation)
		if one == keep || !slices.Contains(one.holders[1:], shared) {
			continue
		}
		if p.bytesOf(one.holders[0]) > own || now.Sub(one.since) > graceTime {
			return one
		}
	}
	return nil
}

func (p *pool) displace(victim *reservation) {
	victim.displaced = true
	p.remove(victim)
	victim.cut()
}

func (p *pool) bytesOf(h account) int {
	if s := p.held[h]; s != nil {
		return s.bytes
	}
	return 0
}

// victim returns the place that a holder which is to have so many bytes may displace next, or nil.
func (p *pool) victim(own int, now time.Time, keep *reservation) *reservation {
	var largest *shares
	sampled := 0
	for _, s := range p.held { // in an order of Go's choice
		if s.order.Len() > 0 && (largest == nil || s.bytes > largest.bytes) {
			largest = s
		}
		if sampled++; sampled == sampledHolders {
			break
		}
	}
	if largest != nil && largest.bytes > own {
		return largest.order.Front().Value.(*reservation)
	}
	if oldest := p.order.Front(); oldest != nil {
		if one := oldest.Value.(*reservation); one != keep && now.Sub(one.since) > graceTime {
			return one
		}
	}
	return nil
}

// count changes the bytes of a place by so many.
func (p *pool) count(one *reservation, change int) {
	one.bytes += change
	p.sum += change
	for _, h := range one.holders {
		s := p.held[h]
		if s == nil {
			s = &shares{}
			p.held[h] = s
		}
		s.bytes += change
	}
}

// remove takes a place out of the pool.
func (p *pool) remove(one *reservation) {
	p.unlist(one)
	p.count(one, -one.bytes)
	for _, h := range one.holders {
		if s := p.held[h]; s.bytes == 0 {
			delete(p.held, h)
		}
	}
}

// unlist takes a place out of what can be displaced.
func (p *pool) unlist(one *reservation) {
	if one.inPool == nil {
		return
	}
	p.order.Remove(one.inPool)
	p.held[one.holders[0]].order.Remove(one.inShares)
	one.inPool, one.inShares = nil, nil
}
