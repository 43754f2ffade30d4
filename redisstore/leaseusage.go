package redisstore

import (
	"context"

	"github.com/google/uuid"
)

// leaseDemand is the demand of a lease that is settled in time. One that expires unsettled is stored longer, and counted
// again by noteExpiredLeases.
func (s *Store) leaseDemand(act actor, n NewLease) demand {
	d := demand{
		organization: act.organization, resource: noResource, events: eventSize,
		bytes: leaseSize, retained: n.Lifetime + min(settledLeaseKept, s.config.Retention),
	}
	if act.family != "" {
		d.agent = act.agent
	}
	return d
}

// reserveLease reserves a lease. It does not refuse a repetition.
func (s *Store) reserveLease(ctx context.Context, act actor, n NewLease) (reservation, error) {
	d := s.leaseDemand(act, n)
	if n.Idempotency == nil {
		held, err := s.reserveIn(act.flow, d)
		return held, s.refusals.count(err)
	}
	return s.reserveUnlessStored(ctx, act.flow, d, s.keys.outcome(act.agent, act.keyDigest(n.Idempotency, "")))
}

// noteExpiredLeases counts leases that expired unsettled, and their memory.
func (s *Store) noteExpiredLeases(organization uuid.UUID, expired int64) {
	if expired == 0 {
		return
	}
	s.expiredLeases.Add(float64(expired))
	s.usage.note(organization, func(c *changes, unsent *quantities) {
		c.eventBytes += expired * eventSize
		c.expire(expiryOf('b', s.config.Retention, s.config.Retention), expired*leaseSize)
		unsent[bytesHeld] += expired * leaseSize
	})
}
