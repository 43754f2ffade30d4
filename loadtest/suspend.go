package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// The sides of a suspension.
const (
	suspended = iota
	free
	sides
)

// suspension is what is known of the suspension of a session of a tree by itself, which several may set and end at once. The tree
// guards it.
type suspension struct {
	began, done [sides]int  // requests for each side
	sure        [sides]bool // the last request of all was for this side, and acknowledged, and overlapped with none for the other
}

// begin notes that a request for a side is about to be sent.
func (s *suspension) begin(side int) {
	s.began[side]++
	s.sure[1-side] = false
}

// finish notes the answer to a request. before is the suspension when it began. A request without an answer may be done at any time.
func (s *suspension) finish(side int, before suspension, answer outcome) {
	if answer != unknown {
		s.done[side]++
	}
	other := 1 - side
	alone := before.began[other] == before.done[other] && s.began[other] == before.began[other]
	s.sure[side] = s.sure[side] || answer == acknowledged && alone
}

// stayed says whether the session was surely on a side all the time since before. No session is suspended at first.
func (s *suspension) stayed(before suspension, side int) bool {
	return before.on(side) && s.on(side) && s.began[1-side] == before.began[1-side]
}

func (s *suspension) on(side int) bool {
	return s.sure[side] || side == free && s.began[suspended] == 0
}

// knownAtSend is what is known when a request about a session of a tree is sent.
type knownAtSend struct {
	own         effect       // its ledger
	suspensions []suspension // of it and of those above
}

// send adds a request to the session's ledger before it is sent.
func (n *node) send(requested effect) knownAtSend {
	m := knownAtSend{own: n.ledger.send(requested)}
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	for at := n; at != nil; at = at.parent {
		m.suspensions = append(m.suspensions, at.suspension)
	}
	return m
}

// barring is what suspensions said to a request all the time.
type barring struct{ forbidden, allowed bool }

// barredSince compares with the moment when a request was sent. The tree must be locked.
func (n *node) barredSince(before knownAtSend) barring {
	b := barring{allowed: true}
	for i, at := 0, n; at != nil && i < len(before.suspensions); i, at = i+1, at.parent {
		b.forbidden = b.forbidden || at.suspension.stayed(before.suspensions[i], suspended)
		b.allowed = b.allowed && at.suspension.stayed(before.suspensions[i], free)
	}
	return b
}

// below returns a session that is drawn among this one and its descendants that are not ended.
func (n *node) below(draw int) *node {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	var live []*node
	n.eachBelow(func(m *node) {
		if !m.ending {
			live = append(live, m)
		}
	})
	if len(live) == 0 {
		return n
	}
	return live[draw%len(live)]
}

// suspendInTree suspends a session, charges one of those below it, which must be refused, and resumes it, and charges another.
func (f *fleet) suspendInTree(ctx context.Context, n *node, a action, due time.Time) *recorder {
	t := f.turn(ctx, n, suspended, due)
	f.chargeNode(ctx, n.below(a.draw), a, time.Now())
	f.turn(ctx, n, free, time.Now())
	f.chargeNode(ctx, n.below(a.draw/2), a, time.Now())
	return t
}

// turn suspends or resumes a session. It asks once: an earlier request must not be done after a later one is answered.
func (f *fleet) turn(ctx context.Context, n *node, side int, due time.Time) *recorder {
	n.tree.mu.Lock()
	before := n.suspension
	n.suspension.begin(side)
	n.tree.mu.Unlock()
	what := [sides]string{"suspend", "resume"}[side]
	t := f.call(ctx, opSuspend, due, f.byKey(http.MethodPost, fmt.Sprintf("%s/%s/%s", sessionsPath, n.sdk.ID(), what), "{}", ""))
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.suspension.finish(side, before, t.reply().outcome())
	f.audit.add(checkTurned(nodeFact{session: n.sdk.ID(), reply: t.reply(), ending: n.ending}))
	return t
}
