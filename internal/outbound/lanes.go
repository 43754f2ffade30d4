package outbound

import (
	"context"
	"sync"
)

// Lanes are the places of requests under way to hosts that tenants choose: quick ones for hosts that answer soon, and slow ones for
// the others, which keep a place for long. So slow hosts cannot take the places of the quick ones.
type Lanes struct{ quick, slow chan struct{} }

// NewLanes returns lanes with so many places each.
func NewLanes(places int) *Lanes {
	return &Lanes{make(chan struct{}, places), make(chan struct{}, places)}
}

// Places is how many places each lane has.
func (l *Lanes) Places() int { return cap(l.quick) }

// Taken is how many places of each lane are taken.
func (l *Lanes) Taken() (quick, slow int) { return len(l.quick), len(l.slow) }

func (l *Lanes) of(slow bool) chan struct{} {
	if slow {
		return l.slow
	}
	return l.quick
}

// Enter waits for a place in a lane, and for one of its tenant's own, whose number is the capacity of own. Those who wait get places
// in turn, and a tenant waits for at most as many places of a lane as it has of its own. slow is asked once the tenant's place is
// there. Enter returns nil when ctx ends.
func (l *Lanes) Enter(ctx context.Context, own chan struct{}, slow func() bool) *Place {
	select {
	case <-ctx.Done():
		return nil
	case own <- struct{}{}:
	}
	lane := l.of(slow())
	select {
	case <-ctx.Done():
		<-own
		return nil
	case lane <- struct{}{}:
		return &Place{lane: lane, own: own, slow: l.slow}
	}
}

// Try is Enter where both places are free, and returns nil otherwise.
func (l *Lanes) Try(own chan struct{}, slow bool) *Place {
	lane := l.of(slow)
	select {
	case own <- struct{}{}:
	default:
		return nil
	}
	select {
	case lane <- struct{}{}:
		return &Place{lane: lane, own: own, slow: l.slow}
	default:
		<-own
		return nil
	}
}

// Place is a place in a lane, and one of its tenant's own.
type Place struct {
	mu        sync.Mutex
	lane, own chan struct{} // lane is nil once the place is left
	slow      chan struct{}
}

// Leave frees both places.
func (p *Place) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.lane
	<-p.own
	p.lane = nil
}

// Slow takes a place in the slow lane instead, for a host that turned out to be slow. It returns false when none is free.
func (p *Place) Slow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lane == nil || p.lane == p.slow {
		return true
	}
	select {
	case p.slow <- struct{}{}:
		<-p.lane
		p.lane = p.slow
		return true
	default:
		return false
	}
}
