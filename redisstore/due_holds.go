package redisstore

import (
	"context"

	"github.com/google/uuid"
)

var releaseHolds = newScript("release_holds", tidies)

// withDueHoldsReleased runs an operation on a session. If holds are due, the operation's script does nothing. Then the store
// releases the holds and runs the operation again.
func (s *Store) withDueHoldsReleased(ctx context.Context, act actor, session uuid.UUID, do func() (*reply, error)) (*reply, error) {
	r, err := do()
	if err != errHoldsDue {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := []string{s.keys.session(act.agent, session), s.keys.holds(act.agent, session), s.keys.events(act.agent),
		s.agentKey(act)}
	for err == errHoldsDue {
		if _, err := s.client.Run(ctx, act.flow, releaseHolds, keys, s.audit(ctx, act)); err != nil {
			return nil, nothingVisible(err)
		}
		r, err = do()
	}
	return r, err
}
