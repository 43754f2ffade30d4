package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

// endTree ends the descendants of a session that has ended, and settles what it can. Errors: ErrOutcomeUnknown; then some may live, and the
// same request goes on.
func (s *Store) endTree(ctx context.Context, act kernel.Actor, id uuid.UUID, flags string) error {
	v := &SessionSummary{ID: id, Agent: act.Agent, keptAbove: strings.Contains(flags, keptAbove), hasChildren: strings.Contains(flags, hasChildren)}
	if v.hasChildren {
		if err := unfinishedBelow(s.endBelow(ctx, act, id)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if done := s.settleEach(ctx, act.Organization, []*SessionSummary{v}); len(done.settled) > 0 {
		s.closeSessions(ctx, act.Organization, []uuid.UUID{id}, time.Time{})
	}
	return nil
}

// settleTrees settles sessions that are over, each after its descendants. It returns those that have nothing left to settle, and those
// that Redis, or the time, kept from that. All but the settled stay among the open sessions, so that an abandoned tree does not stay for
// ever. Where descendants keep a session from that, it goes on with what may have been broken off above them.
func (s *Store) settleTrees(ctx context.Context, organization uuid.UUID, over []*SessionSummary) (settled, failed []*SessionSummary) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	done := s.settleEach(ctx, organization, over)
	var followed []*SessionSummary
	for _, w := range done.waiting {
		switch {
		case w.state == usageOfRevoked: // its descendants may be other agents'
		case ctx.Err() == nil && s.followAbove(ctx, organization, w.at(), w.state):
			followed = append(followed, w.SessionSummary)
		default:
			done.failed = append(done.failed, w.SessionSummary)
		}
	}
	after := s.settleEach(ctx, organization, followed)
	return append(done.settled, after.settled...), append(done.failed, after.failed...)
}

// settlement is what became of sessions that are over.
type settlement struct {
	settled []*SessionSummary // they have nothing left to settle
	failed  []*SessionSummary // Redis did not answer, or refused
	waiting []waitingTree     // for their children
}

// waitingTree is a session that is over and waits for its children, with its state.
type waitingTree struct {
	*SessionSummary
	state string
}

func (w waitingTree) at() place { return place{w.ID, w.Agent} }

// settleEach settles sessions that are over, each after its descendants.
func (s *Store) settleEach(ctx context.Context, organization uuid.UUID, over []*SessionSummary) settlement {
	done := s.settleOvers(ctx, organization, over)
	if len(done.waiting) == 0 {
		return done
	}
	s.settleAll(ctx, organization, kernel.Map(done.waiting, waitingTree.at))
	after := s.settleOvers(ctx, organization, kernel.Map(done.waiting, func(w waitingTree) *SessionSummary { return w.SessionSummary }))
	if ctx.Err() != nil { // there may be more living children than there is time for: not again so soon
		after.failed = slices.DeleteFunc(after.failed, func(v *SessionSummary) bool {
			return slices.Contains(done.waiting, waitingTree{v, usageOfRevoked})
		})
	}
	return settlement{append(done.settled, after.settled...), append(done.failed, after.failed...), after.waiting}
}

// settleOvers settles those of the sessions that are in a tree.
func (s *Store) settleOvers(ctx context.Context, organization uuid.UUID, over []*SessionSummary) (done settlement) {
	states := make([]string, len(over))
	_ = eachOf(ctx, len(over), func(ctx context.Context, i int) error {
		if !over[i].inTree() {
			states[i] = usageClosed
			return nil
		}
		if state, err := s.settleOwn(ctx, organization, place{over[i].ID, over[i].Agent}); err == nil {
			states[i] = state
		}
		return nil
	})
	for i, v := range over {
		switch {
		case isWaiting(states[i]):
			done.waiting = append(done.waiting, waitingTree{v, states[i]})
		case states[i] == usageClosed, states[i] == usageUnkept, states[i] == usageOpen && !v.keptAbove:
			done.settled = append(done.settled, v)
		case states[i] == "":
			done.failed = append(done.failed, v)
		}
	}
	return done
}

// settleAll settles what sessions that are over have set aside, deepest first, as far as ctx lasts. Failures are ignored: a session
// with parts stays among its organization's open ones, so the next list or pruning goes on.
func (s *Store) settleAll(ctx context.Context, organization uuid.UUID, above []place) {
	for of := range slices.Chunk(above, parentsAtOnce) {
		parts, err := partsOf(ctx, s, flow{Owner: organization}, of)
		if err != nil {
			return
		}
		waiting := s.settleParts(ctx, organization, of, parts)
		if len(waiting) == 0 {
			continue
		}
		s.settleAll(ctx, organization, kernel.Map(waiting, part.at))
		s.settleParts(ctx, organization, of, waiting)
	}
}

// settleParts settles those of the parts whose sessions are over, and returns those that wait for their own children.
func (s *Store) settleParts(ctx context.Context, organization uuid.UUID, of []place, parts []part) (waiting []part) {
	states := make([]string, len(parts))
	_ = eachOf(ctx, len(parts), func(ctx context.Context, i int) error {
		state, err := s.settlePart(ctx, organization, of[parts[i].of], parts[i].place, parts[i].taken, refusesMissing)
		if parts[i].taken {
			state = usageClosed
		}
		if err == nil {
			states[i] = state
		}
		return nil
	})
	var settled []uuid.UUID
	for i, p := range parts {
		switch {
		case isWaiting(states[i]):
			waiting = append(waiting, p)
		case states[i] == usageClosed:
			settled = append(settled, p.session)
		}
	}
	for ids := range slices.Chunk(settled, 500) {
		s.closeSessions(ctx, organization, ids, time.Time{})
	}
	return waiting
}
