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

// tidyAfterCreation leaves the indexes right once a session's creation has come out. It does what it can: whatever
// stays is dropped by a later reader.
func (s *Store) tidyAfterCreation(ctx context.Context, organization, agent, session uuid.UUID, c creation) {
	switch {
	case c.err == nil && !c.replayed && rand.N(pruneEvery) == 0:
		ctx, cancel := context.WithTimeout(ctx, pruneTime)
		defer cancel()
		s.pruneIndexes(ctx, organization, agent)
	case c.cameToNothing():
		s.drop(ctx, s.keys.organizationOpen(organization), members{}, session)
	}
}

// tidyAfterAgent drops agents that were deleted from their organization's index, for organizations that never list them.
func (s *Store) tidyAfterAgent(ctx context.Context, organization uuid.UUID) {
	if rand.N(pruneEvery) != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	prune(ctx, s, index[Agent]{
		key: s.keys.organizationAgents(organization),
		load: func(ctx context.Context, ids []uuid.UUID, _ time.Time) ([]*Agent, error) {
			return s.loadAgents(ctx, organization, ids)
		},
	})
}

// tidyAfterBegin is tidyAfterCreation for a transaction.
func (s *Store) tidyAfterBegin(ctx context.Context, t AccessToken, session, id uuid.UUID, c creation) {
	key := s.keys.organizationTransactions(t.Organization)
	switch {
	case c.err == nil && !c.replayed && rand.N(pruneEvery) == 0:
		ctx, cancel := context.WithTimeout(ctx, pruneTime)
		defer cancel()
		load := s.loadTransactionsOf(t.Organization)
		prune(ctx, s, index[Transaction]{key: key, load: load})
		prune(ctx, s, index[Transaction]{key: s.keys.agentTransactions(t.Agent), members: ofCell(t.Agent), load: load})
		if session != uuid.Nil {
			key := s.keys.sessionTransactions(t.Agent, session)
			prune(ctx, s, index[Transaction]{key: key, members: ofCell(t.Agent), load: load})
		}
	case c.cameToNothing():
		s.drop(ctx, key, members{}, id)
	}
}

// creation is what came of creating an object that its indexes were told of before.
type creation struct {
	err      error
	replayed bool // an earlier request had created another one
}

// cameToNothing says that the object with the new id certainly does not exist.
func (c creation) cameToNothing() bool {
	return c.replayed || c.err != nil && !errors.Is(c.err, ErrOutcomeUnknown) && !errors.Is(c.err, ErrUnavailable)
}

func (s *Store) pruneIndexes(ctx context.Context, organization, agent uuid.UUID) {
	prune(ctx, s, s.openSessions(organization))
	prune(ctx, s, s.closedSessions(organization))
	prune(ctx, s, s.sessionsOf(actor{organization: organization, agent: agent}))
}

func prune[T any](ctx context.Context, s *Store, ix index[T]) {
	var sample *redis.StringSliceCmd
	var clock *redis.TimeCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		sample, clock = p.ZRandMember(ctx, ix.key, pruneSample), p.Time(ctx)
		return nil
	})
	if err != nil {
		return
	}
	ids := make([]uuid.UUID, 0, pruneSample)
	for _, member := range sample.Val() {
		if id, err := ix.members.id(member); err == nil {
			ids = append(ids, id)
		}
	}
	now := clock.Val()
	objects, err := ix.load(ctx, ids, now)
	if err != nil {
		return
	}
	repair(ctx, s, ix, ids, objects, now)
}
