package redisstore

import (
	"context"

	"github.com/google/uuid"
)

var releaseHolds = newScript("budgets/release_holds", bestEffort)

// releasingDueHolds runs an operation on a session. While the session has holds that are due, or the day is over on which its
// usage counts, the operation does nothing and
// returns errHoldsDue; then releasingDueHolds releases them, turns the day and runs the operation again.
func (s *Store) releasingDueHolds(ctx context.Context, act actor, session uuid.UUID, do func() (*reply, error)) (*reply, error) {
	r, err := do()
	if !isDue(err) {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for isDue(err) {
		release := s.releaseHolds
		if err == errAgentHoldsDue {
			release = s.releaseAgentHolds
		}
		if failed := release(ctx, act, session); failed != nil {
			return nil, failed
		}
		r, err = do()
	}
	return r, err
}

// isDue says whether an operation did nothing because holds are due.
func isDue(err error) bool { return err == errHoldsDue || err == errAgentHoldsDue }

// releaseHolds releases holds of a session that are due, ends its leases, and folds the usage of a day that is over.
func (s *Store) releaseHolds(ctx context.Context, act actor, session uuid.UUID) error {
	keys := []string{s.keys.session(act.agent, session), s.keys.holds(act.agent, session), s.keys.events(act.agent),
		s.agentKey(act), s.keys.leases(act.agent, session), s.keys.agentHolds(act.agent), s.keys.usageDays(act.agent)}
	released, err := s.client.Run(ctx, act.flow, releaseHolds, keys, s.audit(ctx, act), s.daysKept(), act.agent)
	if err != nil {
		return nothingVisible(err)
	}
	s.noteExpiredLeases(act.organization, released.Number(0))
	s.expiredHolds.Add(float64(released.Number(1)))
	return nil
}
