package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

var lookAtParts = kernel.NewScript("budgets/look_at_parts", bestEffort)

const (
	// lookPause is how long the service waits before it looks at the same part again.
	lookPause = 10 * time.Second
	// mostLooks is how many parts one refused request looks at in each level of the tree.
	mostLooks = 1000
	// mostLevels is how many levels it looks at: those of a tree.
	mostLevels = 8
)

// mostRuns is how often an operation runs for one call. Between two runs up to 500 holds are released, or children are settled.
const mostRuns = 1000

// repeatWhileDue runs an operation on a session, again and again while it does nothing because holds of the session are due, or
// the day is over on which its usage counts: it releases them and turns the day in between, for at most callTimeout.
func (s *Store) repeatWhileDue(ctx context.Context, act kernel.Actor, session uuid.UUID, run func() (*reply, error)) (*reply, error) {
	return s.repeat(ctx, act, session, false, nil, run)
}

// repeatForRoom is repeatWhileDue for an operation that a limit may refuse in which children's parts may make room. It then settles
// the children that are over, and runs the operation once more. With an idempotency key the first refusal is the outcome, so only
// the next request finds the room.
func (s *Store) repeatForRoom(ctx context.Context, act kernel.Actor, session uuid.UUID, idem *Idempotency, run func() (*reply, error)) (*reply, error) {
	return s.repeat(ctx, act, session, true, idem, run)
}

func (s *Store) repeat(ctx context.Context, act kernel.Actor, session uuid.UUID, maySettle bool, idem *Idempotency, run func() (*reply, error)) (*reply, error) {
	releasing := ctx // until something is due
	for range mostRuns {
		r, err := run()
		switch {
		case kernel.IsDue(err):
			if releasing == ctx {
				bounded, cancel := context.WithTimeout(ctx, callTimeout)
				defer cancel()
				releasing = bounded
			}
			if failed := s.releaseDue(releasing, act, session, err); failed != nil {
				return nil, failed
			}
		case maySettle && mayGiveBack(err):
			maySettle = false
			if !s.settleBelow(ctx, act.Organization, place{session, act.Agent}) || idem != nil && !idem.Outcome.Forgotten {
				return r, err
			}
		default:
			return r, err
		}
	}
	return nil, fmt.Errorf("%w: holds of the session are due after %d runs", ErrUnavailable, mostRuns)
}

// notGivenBack are limits of a session in which no child of it makes room.
var notGivenBack = []string{"expires_at", "max_depth", "max_lease_seconds", "max_value_usd_per_action"}

// mayGiveBack says whether children of the session that refuses this may make room.
func mayGiveBack(err error) bool {
	if limit, is := errors.AsType[*LimitError](err); is {
		return limit.Usage.Delegated != nil && !slices.Contains(notGivenBack, limit.Limit)
	}
	below, is := errors.AsType[*BelowUsageError](err)
	return is && below.Usage.Delegated != nil
}

// settleBelow looks at the parts of a session, or of the budget, and settles those that are over. It says whether any was.
// Failures are ignored: the next request that needs a part tries again.
func (s *Store) settleBelow(ctx context.Context, organization uuid.UUID, above place) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var left [mostLevels]int
	for level := range left {
		left[level] = mostLooks
	}
	return s.settleLevels(ctx, organization, above, left[:])
}

// settleLevels settles the parts that are over, and before that the parts of those whose own children keep them from closing. left is
// how many it may look at in each level from here.
func (s *Store) settleLevels(ctx context.Context, organization uuid.UUID, above place, left []int) bool {
	waiting, any := s.settleLevel(ctx, organization, above, &left[0])
	for p, state := range waiting {
		if len(left) == 1 || left[1] == 0 || ctx.Err() != nil {
			break
		}
		followed := s.followAbove(ctx, organization, p, state)
		if !s.settleLevels(ctx, organization, p, left[1:]) && !followed {
			continue
		}
		if state, err := s.settlePart(ctx, organization, above, p, false, awaitsMissing); err == nil && state != usageOpen && !isWaiting(state) {
			any = true
		}
	}
	return any
}

// followAbove goes on where the request that ended or shortened a session was broken off: it ends the descendants of one that was
// ended, or makes those of one that has expired expire too. Else their parts would not come back before they are over by themselves.
// It says whether it did.
func (s *Store) followAbove(ctx context.Context, organization uuid.UUID, p place, state string) bool {
	switch state {
	case usageOfEnded:
		return s.endBelow(ctx, ownActor(organization, p.agent), p.session) == nil
	case usageOfExpired:
		return s.shortenBelow(ctx, flow{Owner: organization}, p) == nil
	}
	return false // the descendants of a revoked agent's session may be other agents'
}

// settleLevel settles the parts of a session, or of the budget, that are over, and returns the sessions that wait for their children,
// with their states.
func (s *Store) settleLevel(ctx context.Context, organization uuid.UUID, above place, left *int) (waiting map[place]string, any bool) {
	keys := []string{s.keys.Reservations(organization), s.keys.ReservationLooks(organization)}
	if above != (place{}) {
		keys = []string{s.keys.Parts(above.agent, above.session), s.keys.Looks(above.agent, above.session)}
	}
	r, err := s.client.Run(ctx, flow{Owner: organization}, lookAtParts, keys, *left, lookPause.Milliseconds(), onItsWay.Milliseconds())
	if err != nil {
		return nil, false
	}
	parts := r.List(0)
	*left -= len(parts.Values) / 3
	var found sync.Mutex
	waiting = map[place]string{}
	_ = eachOf(ctx, len(parts.Values)/3, func(ctx context.Context, i int) error {
		child, _ := kernel.Members{}.ID(parts.Text(3 * i))
		agent, taken, err := readPart(parts.Text(3*i + 1))
		if err != nil {
			return nil // a part that is gone meanwhile
		}
		p := place{child, agent}
		state, err := s.settlePart(ctx, organization, above, p, taken, missing(parts.Text(3*i+2) != ""))
		found.Lock()
		defer found.Unlock()
		switch {
		case err != nil || state == usageOpen:
		case isWaiting(state):
			waiting[p] = state
		default:
			any = true
		}
		return nil
	})
	return waiting, any
}
