package client

import (
	"runtime"
	"sync/atomic"
	"time"

	"remit/money"
)

const (
	// The bits of a packed amount: 24 for actions and 40 for value. They bound one grant, not a lease: a larger charge goes to
	// the service.
	valueBits       = 40
	maxGrantActions = 1<<(64-valueBits) - 1
	maxGrantValue   = money.MicroUSD(1<<valueBits - 1)

	// namedTypes is the number of action types that a lease reports by name: with the rest the service takes 64.
	namedTypes = 63
	restSlot   = 0 // of charges without a type, and of further types
	restType   = "other"
)

// amount is what a charge needs, a grant holds or a session has left.
type amount struct {
	actions int64
	value   money.MicroUSD
}

func (a amount) covers(b amount) bool { return a.actions >= b.actions && a.value >= b.value }
func (a amount) isZero() bool         { return a == amount{} }

func (a amount) plus(b amount) amount  { return amount{a.actions + b.actions, a.value + b.value} }
func (a amount) minus(b amount) amount { return amount{a.actions - b.actions, a.value - b.value} }
func (a amount) times(n int64) amount  { return amount{a.actions * n, a.value * money.MicroUSD(n)} }

func (a amount) least(b amount) amount {
	return amount{min(a.actions, b.actions), min(a.value, b.value)}
}
func (a amount) most(b amount) amount {
	return amount{max(a.actions, b.actions), max(a.value, b.value)}
}

// packed is an amount in one word, so that one atomic operation takes both parts. Sums of what one grant holds do not overflow.
type packed uint64

func pack(a amount) packed             { return packed(a.actions)<<valueBits | packed(a.value) }
func (p packed) unpack() amount        { return amount{int64(p >> valueBits), p.value()} }
func (p packed) actions() int64        { return int64(p >> valueBits) }
func (p packed) value() money.MicroUSD { return money.MicroUSD(p) & maxGrantValue }

// grant is one lease of the service while it is spent here. Its id and its size never change.
type grant struct {
	id      string
	granted amount
	begun   time.Duration // when it was asked for, on the clock of its Lease
	until   time.Duration // from then on nothing is spent from it
	since   time.Duration // when it became the current one
	low     amount        // below this in either part the next grant is fetched
	left    packed        // what was not taken when it was frozen

	rest   atomic.Uint64 // what may still be taken, packed; 0 once frozen
	nudged atomic.Bool   // whether the next grant was asked for

	// What was taken, by slot of the action type, packed. The last is what was taken too late and granted to no one. A charge
	// adds here after it took from rest, so the sum may lag behind for a moment.
	taken [namedTypes + 2]atomic.Uint64
}

const voidSlot = namedTypes + 1

// take takes need from the rest, all or nothing, and returns what is left then.
func (g *grant) take(need packed) (packed, bool) {
	for {
		rest := packed(g.rest.Load())
		if rest.actions() < need.actions() || rest.value() < need.value() {
			return 0, false
		}
		if g.rest.CompareAndSwap(uint64(rest), uint64(rest-need)) {
			return rest - need, true
		}
	}
}

// charge takes need and counts it under the slot, unless the grant has expired. It reads the clock after it took: then the
// process cannot have been stopped between the two until after the expiry.
func (g *grant) charge(base time.Time, need packed, slot int) (left packed, ok bool) {
	left, ok = g.take(need)
	if !ok {
		return 0, false
	}
	if time.Since(base) >= g.until {
		g.taken[voidSlot].Add(uint64(need))
		return 0, false
	}
	g.taken[slot].Add(uint64(need))
	return left, true
}

// isLow reports whether so little is left that the next grant should be fetched.
func (g *grant) isLow(left packed) bool {
	return left.actions() < g.low.actions || left.value() < g.low.value
}

// freeze ends spending: no charge takes anything from now on. Call it once.
func (g *grant) freeze() { g.left = packed(g.rest.Swap(0)) }

// remaining returns what may still be taken, or was left when the grant was frozen.
func (g *grant) remaining() amount { return packed(max(g.rest.Load(), uint64(g.left))).unpack() }

// used returns what was taken.
func (g *grant) used() amount { return g.granted.minus(g.remaining()) }

// usage is what was charged to a frozen grant.
type usage struct {
	all    amount
	bySlot [namedTypes + 1]amount
}

// usage waits for the charges that have taken and not booked yet. They need a few instructions more.
func (g *grant) usage() usage {
	var u usage
	for {
		sum := packed(g.taken[voidSlot].Load())
		u.all = amount{}
		for slot := range u.bySlot {
			taken := packed(g.taken[slot].Load())
			u.bySlot[slot] = taken.unpack()
			u.all = u.all.plus(u.bySlot[slot])
			sum += taken
		}
		if sum == pack(g.granted)-g.left {
			return u
		}
		runtime.Gosched()
	}
}
