package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Sessions and transactions vanish by themselves when their time is up; their entries in the indexes do not. Readers drop those they
// meet. For indexes that nobody reads, one creation in pruneEvery looks at pruneSample random entries: in the long run
// that drops one for each that is added as soon as half of an index is gone, so it holds at most about twice what
// lives, and no call ever walks over all of it.
const (
	pruneEvery  = 8
	pruneSample = 16
	pruneTime   = 100 * time.Millisecond // the creation's answer waits for it
)

// pruneAfterSession leaves the indexes right once a session's creation has come out. It does what it can: whatever
// stays is dropped by a later reader.
func (s *Store) pruneAfterSession(ctx context.Context, organization, agent, session uuid.UUID, c creationResult) {
	switch {
	case c.err == nil && !c.replayed && rand.N(pruneEvery) == 0:
		ctx, cancel := context.WithTimeout(ctx, pruneTime)
		defer cancel()
		s.pruneIndexes(ctx, organization, agent)
	case c.createdNothing():
		s.drop(ctx, s.keys.organizationOpen(organization), members{}, session)
	}
}

// pruneAfterAgent drops agents that were deleted from their organization's index, for organizations that never list them.
func (s *Store) pruneAfterAgent(ctx context.Context, organization uuid.UUID) {
	if rand.N(pruneEvery) != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	prune(ctx, s, index[Agent]{
		key:  s.keys.organizationAgents(organization),
		late: s.lateIndex(organization, s.keys.organizationAgents, s.keys.suspectAgents),
		load: func(ctx context.Context, ids []uuid.UUID, _ time.Time) ([]*Agent, error) {
			return s.loadAgents(ctx, organization, ids)
		},
	}, pruneSample)
}

// pruneAfterBegin is pruneAfterSession for a transaction.
func (s *Store) pruneAfterBegin(ctx context.Context, t AccessToken, session, id uuid.UUID, c creationResult) {
	key := s.keys.organizationTransactions(t.Organization)
	switch {
	case c.err == nil && !c.replayed && rand.N(pruneEvery) == 0:
		ctx, cancel := context.WithTimeout(ctx, pruneTime)
		defer cancel()
		load := s.loadTransactionsOf(t.Organization)
		late := s.lateIndex(t.Organization, s.keys.organizationTransactions, s.keys.suspectTransactions)
		prune(ctx, s, index[Transaction]{key: key, late: late, load: load}, pruneSample)
		prune(ctx, s, index[Transaction]{key: s.keys.agentTransactions(t.Agent), members: ofCell(t.Agent), load: load}, pruneSample)
		if session != uuid.Nil {
			key := s.keys.sessionTransactions(t.Agent, session)
			prune(ctx, s, index[Transaction]{key: key, members: ofCell(t.Agent), load: load}, pruneSample)
		}
	case c.createdNothing():
		s.drop(ctx, key, members{}, id)
	}
}

// creationResult is what came of creating an object that its indexes were told of before.
type creationResult struct {
	err      error
	replayed bool // an earlier request had created another one
}

// createdNothing says that the object with the new id certainly does not exist.
func (c creationResult) createdNothing() bool {
	return c.replayed || c.err != nil && !errors.Is(c.err, ErrOutcomeUnknown) && !errors.Is(c.err, ErrUnavailable)
}

func (s *Store) pruneIndexes(ctx context.Context, organization, agent uuid.UUID) {
	prune(ctx, s, s.openSessions(organization), pruneSample)
	prune(ctx, s, s.closedSessions(organization), pruneSample)
	prune(ctx, s, s.sessionsOf(actor{organization: organization, agent: agent}), pruneSample)
}

// prune repairs what a sample of an index finds. Of an index that is written before its objects it also looks at those that
// have been without an object for longest: that finds each again without waiting for chance.
func prune[T any](ctx context.Context, s *Store, ix index[T], entries int) {
	var sample, suspects *redis.StringSliceCmd
	var clock *redis.TimeCmd
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		sample, clock = p.ZRandMember(ctx, ix.key, entries), p.Time(ctx)
		if ix.late != nil {
			suspects = p.ZRange(ctx, ix.late.suspects, 0, pruneSample-1)
		}
		return nil
	})
	if err != nil {
		return
	}
	ids := ix.members.known(sample.Val())
	sampled := len(ids)
	if suspects != nil {
		ids = append(ids, ix.members.known(suspects.Val())...)
	}
	objects, err := ix.load(ctx, ids, clock.Val())
	if err != nil {
		return
	}
	repair(ctx, s, ix, ids, objects)
	var cleared []uuid.UUID
	for i := sampled; i < len(ids); i++ {
		if objects[i] != nil {
			cleared = append(cleared, ids[i])
		}
	}
	if len(cleared) > 0 {
		s.drop(ctx, ix.late.suspects, ix.members, cleared...)
	}
}

// known returns the ids that members stand for, without what stands for none.
func (m members) known(entries []string) []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(entries))
	for _, entry := range entries {
		if id, err := m.id(entry); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
