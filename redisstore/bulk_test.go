package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisproc"
)

// occupy takes every place.
func (b *bulk) occupy(t *testing.T, f flow) {
	t.Helper()
	for range bulkPipelines {
		wantError(t, "a place that is free", b.enter(t.Context(), f), nil)
	}
}

func (b *bulk) howMany() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.row.waiting
}

// An organization that sends nothing but batches makes only the own queue longer.
func TestAnotherOrganizationsBatchHasTheNextTurnAndAFloodIsTurnedAway(t *testing.T) {
	t.Parallel()
	b := &bulk{}
	flood, calm := aFlow(), aFlow()
	b.occupy(t, flood)
	var passengers []*passenger
	for range bulkWaiting {
		p, err := b.join(flood)
		wantError(t, "one of the flood", err, nil)
		passengers = append(passengers, p)
	}
	err := b.enter(t.Context(), flood)
	wantError(t, "one more of the flood", err, errLaneFull)
	wantError(t, "a write", classify(err, writes), ErrOverloaded)
	other, err := b.join(calm)
	wantError(t, "another organization's", err, nil)
	b.leave()
	b.leave()
	if len(passengers[0].done) != 1 || len(other.done) != 1 || len(passengers[1].done) != 0 {
		t.Error("the other organization's batch is not among the first two")
	}
}

func TestWhoGetsNoPlaceInTimeIsToldThatNothingRanAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := &bulk{}
	f := aFlow()
	b.occupy(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	wantError(t, "who leaves", b.enter(ctx, f), errLaneFull)
	wantError(t, "who waits too long", b.enter(t.Context(), f), errLaneFull)
	for range bulkPipelines {
		b.leave()
	}
	if b.underWay != 0 || b.howMany() != 0 {
		t.Errorf("%d under way, %d wait", b.underWay, b.howMany())
	}
}

func TestOnlyAFewBatchesAreUnderWayAtOnceAndEachIsServed(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	const senders = 50
	w := newTenant(t, s, NewSession{MaxActions: 1e9, MaxValue: money.USD})
	token := byToken(w.exchange(t, s))
	loadScripts(t, s)
	var now, highest atomic.Int64
	store := watched(t, s, func(string) redis.Hook {
		return batchHook{pipeline: func(send func() error, _ []redis.Cmder) error {
			defer now.Add(-1)
			for together, before := now.Add(1), highest.Load(); together > before && !highest.CompareAndSwap(before, together); {
				before = highest.Load()
			}
			return send()
		}}
	})
	batch := make([]BatchCharge, 100)
	for i := range batch {
		batch[i] = BatchCharge{w.session.ID, Charge{Count: 1}}
	}
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			outcomes, err := store.ChargeBatch(context.Background(), token, batch, nil)
			if err != nil || outcomes[0].Err != nil && !errors.Is(outcomes[0].Err, ErrOverloaded) {
				t.Errorf("%v, %v", err, outcomes)
			}
		})
	}
	group.Wait()
	if highest.Load() == 0 || highest.Load() > bulkPipelines {
		t.Errorf("%d batches were under way at once, at most %d should be", highest.Load(), bulkPipelines)
	}
	for _, l := range store.lanes.byAddress {
		if l.batches.underWay != 0 || l.batches.howMany() != 0 {
			t.Errorf("%d places are not given back, %d wait", l.batches.underWay, l.batches.howMany())
		}
	}
}

func TestListsWaitForAPlaceAndLeaveItAgain(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		s.lists.occupy(t, aFlow())
		if _, err := s.Agent(t.Context(), w.key, w.agent.ID); !errors.Is(err, ErrOverloaded) {
			t.Errorf("with every place taken: %v", err)
		}
		for range bulkPipelines {
			s.lists.leave()
		}
		for range 2 * bulkPipelines {
			must(s.Sessions(t.Context(), w.byKey(), Query{Limit: 1}))(t)
		}
		if s.lists.underWay != 0 {
			t.Errorf("%d places are not given back", s.lists.underWay)
		}
	})
}
