package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Sessions and transactions expire by TTL; their index entries do not. Readers drop obsolete entries that they find. For
// indexes without readers, one creation in pruneEvery checks pruneSample random entries. Once half of an index is obsolete,
// that drops on average one entry for each new one, so an index has at most about twice as many entries as objects, and no
// call scans all of it.
const (
	pruneEvery  = 8
	pruneSample = 16
	pruneTime   = 100 * time.Millisecond // the response to the creation waits for it
)

// pruneAfterSession drops the index entry of a session that was not created, and sometimes prunes the indexes after one that
// was. Failures are ignored, because a later reader drops what remains.
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

// pruneAfterAgent sometimes drops deleted agents from their organization's index, for organizations that never list them.
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
			return s.loadAgents(ctx, organization, ids, listedAgentFields)
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

// creationResult is the result of creating an object that was entered in its index before.
type creationResult struct {
	err      error
	replayed bool // an earlier request created another object
}

// createdNothing says whether the object with the new id certainly does not exist.
func (c creationResult) createdNothing() bool {
	return c.replayed || c.err != nil && !errors.Is(c.err, ErrOutcomeUnknown) && !errors.Is(c.err, ErrUnavailable)
}

func (s *Store) pruneIndexes(ctx context.Context, organization, agent uuid.UUID) {
	prune(ctx, s, s.openSessions(organization), pruneSample)
	prune(ctx, s, s.closedSessions(organization), pruneSample)
	prune(ctx, s, s.sessionsOf(actor{organization: organization, agent: agent}), pruneSample)
}

// prune repairs a random sample of an index. Of an index that is written before its objects it also checks the entries that
// have been without an object for longest, which a random sample might miss for long.
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

// known returns the ids of members, without members that encode no id.
func (m members) known(entries []string) []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(entries))
	for _, entry := range entries {
		if id, err := m.id(entry); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
