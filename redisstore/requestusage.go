package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// reserveRequest reserves a request for more. It does not refuse a repetition. How long the request stays is known only
// afterwards.
func (s *Store) reserveRequest(ctx context.Context, act actor, n NewSessionRequest) (reservation, error) {
	d := demand{
		organization: act.organization, agent: act.agent, resource: noResource, events: eventSize,
		bytes: recordOverhead + int64(len(n.Reason)), retained: s.config.Retention,
	}
	if n.Idempotency == nil {
		held, err := s.reserveIn(act.flow, d)
		return held, s.refusals.count(err)
	}
	return s.reserveUnlessStored(ctx, act.flow, d, s.keys.outcome(act.agent, act.keyDigest(n.Idempotency, "")))
}

// noteDecision counts the event of a decision, and the memory that its comment takes.
func (s *Store) noteDecision(organization uuid.UUID, grown int64, retained time.Duration) {
	s.usage.note(organization, func(c *changes, unsent *quantities) {
		c.eventBytes += eventSize
		if grown > 0 {
			c.expire(expiryOf('b', retained, retained), grown)
			unsent[bytesHeld] += grown
		}
	})
}
