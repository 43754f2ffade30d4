package redisstore

import (
	"sync"
	"testing"

	"github.com/google/uuid"
	"remit/money"
)

// cost is what something takes from a session's limits.
type cost struct {
	actions int64
	value   money.MicroUSD
}

func (c cost) plus(d cost) cost  { return cost{c.actions + d.actions, c.value + d.value} }
func (c cost) minus(d cost) cost { return cost{c.actions - d.actions, c.value - d.value} }

// within says whether both amounts are in the bounds.
func (c cost) within(least, most cost) bool {
	return c.actions >= least.actions && c.actions <= most.actions && c.value >= least.value && c.value <= most.value
}

// racedTree is a tree that many change at once by two instances, with what they know of it.
type racedTree struct {
	t         *testing.T
	instances [2]*Store
	key       APIKey
	agents    []*racedAgent
	most      int // sessions

	lock          sync.Mutex // guards what follows, and all nodes and gates
	nodes         []*racedNode
	coming        int            // sessions that are being created
	done, refused map[string]int // by operation
	unanswered    map[string]int
}

type racedAgent struct {
	id         uuid.UUID
	token      AccessToken
	suspension racedGate
}

// racedNode is a session as those know it who change it.
type racedNode struct {
	place
	agent      *racedAgent
	above      *racedNode // nil for the root
	depth      int
	suspension racedGate
	mayBeOver  bool // its end or that of one above was sent, or it may have expired
	mayExpire  bool
	isOver     bool // its end was acknowledged

	limits        cost // the most that it may have now
	own           cost // that was charged to it, with leases whole until they are settled
	overage       money.MicroUSD
	unsure        cost // that was given back, unless it was closed before; and what was not answered
	unsureOverage money.MicroUSD
	pending       []racedHold
	committed     []racedCommit
	leases        []Lease
	treeSum
}

// treeSum is of a session with all below it. It bounds what the store has at every moment, because a client takes from surely before it
// sends, and adds to it when the answer is there; and the other way round with possibly.
type treeSum struct {
	surely, possibly cost // used and held
	lost, raised     cost // all that surely has lost and possibly has gained so far
}

// racedHold is what a pending transaction holds. It is certain until an end is sent.
type racedHold struct {
	id      uuid.UUID
	value   money.MicroUSD
	certain bool
}

type racedCommit struct {
	id             uuid.UUID
	value, overage money.MicroUSD
}

// path calls do for the session and all above it.
func (n *racedNode) path(do func(*racedNode)) {
	for at := n; at != nil; at = at.above {
		do(at)
	}
}

func (n *racedNode) isBelow(above *racedNode) (found bool) {
	n.path(func(at *racedNode) { found = found || at == above })
	return found
}

// mayGain is called before a request that may use or hold so much.
func (r *racedTree) mayGain(n *racedNode, c cost) {
	r.lock.Lock()
	defer r.lock.Unlock()
	n.path(func(at *racedNode) { at.possibly, at.raised = at.possibly.plus(c), at.raised.plus(c) })
}

// gained is called with the lock when so much is used or held. This is where no limit may be exceeded.
func (r *racedTree) gained(n *racedNode, c cost) {
	n.path(func(at *racedNode) {
		at.surely = at.surely.plus(c)
		if at.surely.actions > at.limits.actions || at.surely.value > at.limits.value {
			r.t.Errorf("in and below a session of level %d are used and held %v, and it has at most %v", at.depth, at.surely, at.limits)
		}
	})
}

// loses is called with the lock before a request that may give so much back.
func (n *racedNode) loses(c cost) {
	n.path(func(at *racedNode) { at.surely, at.lost = at.surely.minus(c), at.lost.plus(c) })
}

// hasNot is called with the lock when so much is not used and not held.
func (n *racedNode) hasNot(c cost) {
	n.path(func(at *racedNode) { at.possibly = at.possibly.minus(c) })
}

// mayHave is called with the lock when it is not known whether so much is used.
func (n *racedNode) mayHave(c cost) { n.unsure = n.unsure.plus(c) }

// willEnd is called before the end of a session is sent. Afterwards no hold in or below it is certain.
func (r *racedTree) willEnd(n *racedNode) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, m := range r.nodes {
		if !m.isBelow(n) {
			continue
		}
		m.mayBeOver = true
		for i, hold := range m.pending {
			if hold.certain {
				m.loses(cost{0, hold.value})
				m.pending[i].certain = false
			}
		}
	}
}

// The sides of a gate, which is open while something is not suspended.
const (
	shut = iota
	open
)

// racedGate is what is known of a suspension that several set and end at once.
type racedGate struct {
	sure           [2]bool // no request to the other side overlapped with one to this side that was acknowledged, or came later
	running, turns [2]int  // requests to this side; turns counts those begun and done
}

func newRacedGate() racedGate { return racedGate{sure: [2]bool{open: true}} }

// turn notes that a request to a side is about to be sent, and returns what to call with its outcome.
func (r *racedTree) turn(g *racedGate, side int) (done func(err error)) {
	r.lock.Lock()
	defer r.lock.Unlock()
	other := 1 - side
	g.running[side]++
	g.turns[side]++
	g.sure[other] = false
	alone, others := g.running[other] == 0, g.turns[other]
	return func(err error) {
		r.lock.Lock()
		defer r.lock.Unlock()
		if isUnanswered(err) {
			return // it may be done at any time
		}
		g.running[side]--
		g.turns[side]++
		if err == nil && alone && g.turns[other] == others {
			g.sure[side] = true
		}
	}
}

// stayed says whether the gate was surely on this side all the time since then.
func (g *racedGate) stayed(since racedGate, side int) bool {
	return since.sure[side] && g.sure[side] && g.turns[1-side] == since.turns[1-side]
}
