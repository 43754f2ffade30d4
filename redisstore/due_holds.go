package redisstore

import (
	"context"

	"github.com/google/uuid"
)

var releaseHolds = newScript("release_holds", bestEffort)

// releasingDueHolds runs an operation on a session. While the session has holds that are due, the operation does nothing and
// returns errHoldsDue; then releasingDueHolds releases them and runs the operation again.
func (s *Store) releasingDueHolds(ctx context.Context, act actor, session uuid.UUID, do func() (*reply, error)) (*reply, error) {
	r, err := do()
	if err != errHoldsDue {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := []string{s.keys.session(act.agent, session), s.keys.holds(act.agent, session), s.keys.events(act.agent),
		s.agentKey(act), s.keys.leases(act.agent, session)}
	for err == errHoldsDue {
		released, failed := s.client.Run(ctx, act.flow, releaseHolds, keys, s.audit(ctx, act))
		if failed != nil {
			return nil, nothingVisible(failed)
		}
		s.noteExpiredLeases(act.organization, released.Number(0))
		s.expiredHolds.Add(float64(released.Number(1)))
		r, err = do()
	}
	return r, err
}
