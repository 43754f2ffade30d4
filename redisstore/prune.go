package redisstore

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
)

// Sessions and transactions expire by TTL; their index entries do not. Readers drop obsolete entries that they find. For
// indexes without readers, one creation in pruneEvery checks pruneSample random entries of the index. Once half of it is obsolete,
// that drops on average one entry for each new one, so an index has at most about twice as many entries as objects, and no
// call scans all of it.
const (
	pruneEvery  = 8
	pruneSample = 16
)

// pruneTime is how long a pruning may take, because the response to the creation waits for it. Tests, which count prunings, allow more.
var pruneTime = 100 * time.Millisecond

// pruneAfterSession drops the index entry of a session that was not created, and sometimes prunes an index after one that was: one at
// most, so that none is left out because another took the time. Failures are ignored, because a later reader drops what remains.
func (s *Store) pruneAfterSession(ctx context.Context, organization, agent, session uuid.UUID, err error, replayed bool) {
	switch {
	case err == nil && !replayed:
		switch rand.N(pruneEvery) {
		case 0:
			pruneInTime(ctx, s, s.openSessions(organization))
		case 1:
			pruneInTime(ctx, s, s.closedSessions(organization))
		case 2:
			pruneInTime(ctx, s, s.sessionsOf(kernel.Actor{Organization: organization, Agent: agent}))
		}
	case createdNothing(err, replayed):
		s.core.Drop(ctx, s.keys.OrganizationOpen(organization), kernel.Members{}, session)
	}
}

// pruneAfterAgent sometimes drops deleted agents from their organization's index, for organizations that never list them.
func (s *Store) pruneAfterAgent(ctx context.Context, organization uuid.UUID) {
	if rand.N(pruneEvery) == 0 {
		pruneInTime(ctx, s, s.agentsOf(organization))
	}
}

// pruneAfterBegin is pruneAfterSession for a transaction.
func (s *Store) pruneAfterBegin(ctx context.Context, t AccessToken, session, id uuid.UUID, err error, replayed bool) {
	switch {
	case err == nil && !replayed:
		switch rand.N(pruneEvery) {
		case 0:
			pruneWhereItPays(ctx, s, s.transactionsOf(t.Organization))
		case 1:
			pruneWhereItPays(ctx, s, s.transactionsIn(t.Actor(), s.keys.AgentTransactions(t.Agent)))
		case 2:
			if session != uuid.Nil {
				pruneWhereItPays(ctx, s, s.transactionsIn(t.Actor(), s.keys.SessionTransactions(t.Agent, session)))
			}
		}
	case createdNothing(err, replayed):
		s.core.Drop(ctx, s.keys.OrganizationTransactions(t.Organization), kernel.Members{}, id)
	}
}

// createdNothing says whether an object that was entered in its index certainly does not exist. replayed says that an earlier request created
// another one.
func createdNothing(err error, replayed bool) bool {
	return replayed || err != nil && !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrUnavailable)
}

// mostSkipped is the most prunings of an index that are left out because the last one found nothing obsolete.
const mostSkipped = 16

// skips count the prunings that are left out, for groups of indexes.
type skips [256]struct{ left, last atomic.Int32 }

var skipsSeed = maphash.MakeSeed()

// pruneWhereItPays prunes an index. Where nothing was obsolete it leaves out the next pruning, then the next two and more, until something
// is: most organizations have few objects that have expired, and a sample takes as long in Redis as the begin itself. So an index has some
// hundred entries more than without skips, whatever its size. A pruning that failed says nothing, and changes nothing of that.
func pruneWhereItPays[T any](ctx context.Context, s *Store, ix kernel.Index[T]) {
	skip := &s.skipped[maphash.String(skipsSeed, ix.Key)%uint64(len(s.skipped))]
	if skip.left.Add(-1) != -1 { // below, another call prunes it now
		return
	}
	next := skip.last.Load()
	if obsolete, isDone := pruneInTime(ctx, s, ix); obsolete > 0 {
		next = 0
	} else if isDone {
		next = min(2*next+1, mostSkipped)
	}
	skip.last.Store(next)
	skip.left.Store(next)
}

// pruneInTime is prune for as long as a creation may wait for it.
func pruneInTime[T any](ctx context.Context, s *Store, ix kernel.Index[T]) (obsolete int, isDone bool) {
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	return prune(ctx, s, ix, pruneSample)
}

// prune repairs a random sample of an index, and returns how many entries it has seen that have no object, and whether it could read them.
// Of an index that is written before its objects it also checks the entries that have been without an object for longest, which a random
// sample might miss for long.
func prune[T any](ctx context.Context, s *Store, ix kernel.Index[T], entries int) (obsolete int, isDone bool) {
	var sample, suspects *redis.StringSliceCmd
	var clock *redis.TimeCmd
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		sample, clock = p.ZRandMember(ctx, ix.Key, entries), p.Time(ctx)
		if ix.Late != nil {
			suspects = p.ZRange(ctx, ix.Late.Suspects, 0, pruneSample-1)
		}
		return nil
	})
	if err != nil {
		return 0, false
	}
	ids := ix.Members.Known(sample.Val())
	sampled := len(ids)
	if suspects != nil {
		ids = append(ids, ix.Members.Known(suspects.Val())...)
	}
	objects, err := ix.Load(ctx, ids, clock.Val())
	if err != nil {
		return 0, false
	}
	kernel.Repair(ctx, s.core, ix, ids, objects)
	var cleared []uuid.UUID
	for i, object := range objects {
		switch {
		case object == nil:
			obsolete++
		case i >= sampled:
			cleared = append(cleared, ids[i])
		}
	}
	if len(cleared) > 0 {
		s.core.Drop(ctx, ix.Late.Suspects, ix.Members, cleared...)
	}
	return obsolete, true
}
