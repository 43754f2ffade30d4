package redisstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
)

func TestPruningDropsDeadEntriesMovesEndedSessionsAndKeepsTheRest(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1, Lifetime: time.Millisecond}, func(t *testing.T, s *Store, w tenant) {
		w.waitUntil(t, s, Expired)
		ended, active := w.newSession(t, s, time.Hour), w.newSession(t, s, time.Hour)
		must(s.EndSession(t.Context(), w.byKey(), ended.ID))(t)
		coming := NewID(w.agent.ID)
		o := w.key.Organization
		want := map[string][]uuid.UUID{
			s.keys.AgentSessions(w.agent.ID): {w.session.ID, ended.ID, active.ID},
			s.keys.OrganizationOpen(o):       {active.ID},
			s.keys.OrganizationClosed(o):     {w.session.ID, ended.ID},
		}
		for index := range want {
			for range pruneSample - 4 { // so that one sample holds all
				addEntries(t, s, index, idOfAge(kernel.CellOf(w.agent.ID), 2*kernel.CreationTime))
			}
		}
		s.pruneIndexes(t.Context(), o, w.agent.ID)
		w.letSuspicionPass(t, s, kernel.CreationTime+time.Minute)
		addEntries(t, s, s.keys.OrganizationOpen(o), coming)
		want[s.keys.OrganizationOpen(o)] = []uuid.UUID{active.ID, coming}
		s.pruneIndexes(t.Context(), o, w.agent.ID)
		for index, want := range want {
			wantIndexed(t, s, index, want...)
		}
		wantEqual(t, "the suspects", must(peek(t, s).ZRange(t.Context(), s.keys.SuspectSessions(o), 0, -1).Result())(t), []string{string(coming[:])})
	})
}

// An entry that was read before its object was written stops being a suspect once pruning finds the object.
func TestPruningClearsSuspectsWhoseObjectExists(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		o := w.key.Organization
		must(peek(t, s).ZAdd(t.Context(), s.keys.SuspectSessions(o), redis.Z{Score: 1, Member: string(w.session.ID[:])}).Result())(t)
		s.pruneIndexes(t.Context(), o, w.agent.ID)
		wantIndexed(t, s, s.keys.OrganizationOpen(o), w.session.ID)
		wantIndexed(t, s, s.keys.SuspectSessions(o))
	})
}

func TestCreationsBoundUnreadIndexes(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		o := w.key.Organization
		live := []string{s.keys.OrganizationOpen(o), s.keys.AgentSessions(w.agent.ID)}
		w.wantBounded(t, s, append(live, s.keys.OrganizationClosed(o)), func() {
			w.newSession(t, s, time.Hour)
			w.letSuspicionPass(t, s, kernel.CreationTime+time.Minute)
		})
		for _, index := range live {
			if !slices.Contains(indexed(t, s, index), w.session.ID) {
				t.Errorf("%s lost a live session", index)
			}
		}
	})
}

func TestBeginsBoundUnreadIndexes(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, inSession := range []bool{false, true} {
			w := newTenant(t, s, NewSession{MaxActions: 1_000_000})
			token, n := w.exchange(t, s).AccessToken, w.alone(0)
			indexes := []string{s.keys.OrganizationTransactions(w.key.Organization), s.keys.AgentTransactions(w.agent.ID)}
			if inSession {
				n = w.beginning(0)
				indexes = append(indexes, s.keys.SessionTransactions(w.agent.ID, w.session.ID))
			}
			live := must(s.Begin(t.Context(), token, n))(t)
			w.wantBounded(t, s, indexes, func() {
				must(s.Begin(t.Context(), token, n))(t)
				w.letSuspicionPass(t, s, kernel.CreationTime+time.Minute)
			})
			for _, index := range indexes {
				if !slices.Contains(indexed(t, s, index), live.ID) {
					t.Errorf("%s lost a live transaction", index)
				}
			}
		}
	})
}

// Only a pruning that found nothing obsolete lets the next one be left out.
func TestAPruningThatFailsLeavesOutNone(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		index := s.transactionsIn(ownActor(w.key.Organization, w.agent.ID), s.keys.AgentTransactions(w.agent.ID))
		addEntries(t, s, index.Key, idOfAge(kernel.CellOf(w.agent.ID), 2*kernel.CreationTime))
		failing, cancel := context.WithCancel(t.Context())
		cancel()
		pruneWhereItPays(failing, s, index)
		pruneWhereItPays(t.Context(), s, index)
		wantIndexed(t, s, index.Key)
	})
}

func (s *Store) pruneIndexes(ctx context.Context, organization, agent uuid.UUID) {
	prune(ctx, s, s.openSessions(organization), pruneSample)
	prune(ctx, s, s.closedSessions(organization), pruneSample)
	prune(ctx, s, s.sessionsOf(kernel.Actor{Organization: organization, Agent: agent}), pruneSample)
}

// wantBounded adds dead entries to indexes, and checks that creations drop most of those, and that none prunes two indexes: there would be
// no time for the second where Redis is far.
func (w tenant) wantBounded(t *testing.T, s *Store, indexes []string, create func()) {
	t.Helper()
	dead := map[uuid.UUID]bool{}
	for _, index := range indexes {
		for range 2 * pruneSample {
			id := idOfAge(kernel.CellOf(w.agent.ID), 2*kernel.CreationTime)
			dead[id] = true
			addEntries(t, s, index, id)
		}
	}
	hasMany := func(index string) bool {
		left := slices.DeleteFunc(indexed(t, s, index), func(id uuid.UUID) bool { return !dead[id] })
		return len(left) > pruneSample/2
	}
	pruned := 0
	s.client.Redis().AddHook(pipelineHook(func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error {
		if commands[0].Name() == "zrandmember" {
			pruned++
		}
		return next(ctx, commands)
	}))
	// One creation in pruneEvery prunes an index, so a thousand of them leave no doubt; how long they take says nothing.
	for range 1000 {
		pruned = 0
		create()
		wantEqual(t, "one index at most is pruned", pruned <= 1, true)
		if !slices.ContainsFunc(indexes, hasMany) {
			return
		}
	}
	t.Fatal("1000 creations left most dead entries in an index")
}

func TestOnlyCertainlyFailedCreationsAreRemovedFromTheirIndexes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      error
		replayed bool
		want     bool
	}{
		"created":        {nil, false, false},
		"created before": {nil, true, true},
		"refused":        {ErrUnknownSession, false, true},
		"in doubt":       {fmt.Errorf("%w: lost", ErrOutcomeUnknown), false, false},
		"unavailable":    {fmt.Errorf("%w: down", ErrUnavailable), false, false},
	} {
		wantEqual(t, name, createdNothing(test.err, test.replayed), test.want)
	}
}
