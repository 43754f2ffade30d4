package fleet

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

// suspensionsAbove returns the suspensions of the session and of those above.
func (s *session) suspensionsAbove() []suspension {
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	var list []suspension
	for at := s; at != nil; at = at.parent {
		list = append(list, at.suspension)
	}
	return list
}

// barring is what suspensions said to a request.
type barring struct {
	suspended      bool // all the time
	maybeSuspended bool // at some time
}

// barredSince compares with the moment when a request was sent. The tree must be locked.
func (s *session) barredSince(before []suspension) (b barring) {
	for i, at := 0, s; at != nil && i < len(before); i, at = i+1, at.parent {
		b.suspended = b.suspended || at.suspension.stayed(before[i], suspended)
		b.maybeSuspended = b.maybeSuspended || !at.suspension.stayed(before[i], free)
	}
	return b
}

// below returns a session that is drawn among this one and its descendants that are not ended.
func (s *session) below(draw int) *session {
	if live := s.live(); len(live) > 0 {
		return live[draw%len(live)]
	}
	return s
}

// suspendInTree suspends a session, charges one of those below it, which must be refused, and resumes it, and charges another.
func (f *fleet) suspendInTree(ctx context.Context, s *session, a action, due time.Time) *recorder {
	t := f.turn(ctx, s, suspended, due)
	f.charge(ctx, s.below(a.draw), a, time.Now())
	f.turn(ctx, s, free, time.Now())
	f.charge(ctx, s.below(a.draw/2), a, time.Now())
	return t
}

// turn suspends or resumes a session. It asks once: an earlier request must not be done after a later one is answered.
func (f *fleet) turn(ctx context.Context, s *session, side int, due time.Time) *recorder {
	s.tree.mu.Lock()
	before := s.suspension
	s.suspension.begin(side)
	s.tree.mu.Unlock()
	what := [sides]string{"suspend", "resume"}[side]
	t := f.call(ctx, opSuspend, due, f.sends(request{method: http.MethodPost, path: fmt.Sprintf("%s/%s/%s", sessionsPath, s.sdk.ID(), what), body: "{}"}, ""))
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	s.suspension.finish(side, before, t.reply().outcome())
	f.audit.add(checkTurned(fact{session: s.sdk.ID(), reply: t.reply(), ending: s.ending}))
	return t
}
