package redisclient

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

func (b *semaphore) occupy(t *testing.T, f Flow) {
	t.Helper()
	for range maxInFlight {
		wantError(t, "a place that is free", b.Acquire(t.Context(), f), nil)
	}
}

// A flow that sends only batches makes only its own queue longer.
func TestAnotherFlowsBatchHasTheNextTurnAndAFloodIsShed(t *testing.T) {
	t.Parallel()
	b := &semaphore{}
	flood, calm := aFlow(), aFlow()
	b.occupy(t, flood)
	var waiting []*pendingCall
	for range maxWaiting {
		p, err := b.join(flood)
		wantError(t, "one of the flood", err, nil)
		waiting = append(waiting, p)
	}
	err := b.Acquire(t.Context(), flood)
	wantError(t, "one more of the flood", err, errQueueFull)
	wantError(t, "a write", classify(err, Writes), ErrOverloaded)
	other, err := b.join(calm)
	wantError(t, "another organization's", err, nil)
	b.Release()
	b.Release()
	if len(waiting[0].done) != 1 || len(other.done) != 1 || len(waiting[1].done) != 0 {
		t.Error("the other organization's batch is not among the first two")
	}
}

func TestACallerThatGetsNoPlaceInTimeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := &semaphore{}
	f := aFlow()
	b.occupy(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	wantError(t, "who leaves", b.Acquire(ctx, f), errQueueFull)
	wantError(t, "who waits too long", b.Acquire(t.Context(), f), errQueueFull)
	for range maxInFlight {
		b.Release()
	}
	wantEqual(t, "left", b.load(), load{})
}

func TestOnlyAFewBatchesAreInFlightAtOnceAndEachIsServed(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, redistest.StartRedis(t, redisproc.Config{}).URL())
	loadScripts(t, c)
	pipelines := &pipelinesSeen{}
	watched(c, func(string) redis.Hook { return pipelines })
	n := newCounter(c)
	const senders = 50
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			if err := second(n.addInBatch(context.Background())); !errors.Is(err, ErrOverloaded) {
				wantError(t, "a batch", err, nil)
			}
		})
	}
	group.Wait()
	if pipelines.together == 0 || pipelines.together > maxInFlight {
		t.Errorf("%d batches were in flight at once, at most %d should be", pipelines.together, maxInFlight)
	}
	for _, l := range c.pipeliners.all() {
		wantEqual(t, "left", l.batches.load(), load{})
	}
}

func TestListsWaitForAPlaceAndReleaseItAgain(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, c *Client, _ *redis.Client) {
		keys := []string{newCounter(c).key}
		c.lists.occupy(t, aFlow())
		if _, err := c.ReadAll(t.Context(), Flow{}, keys, "a"); !errors.Is(err, ErrOverloaded) {
			t.Errorf("with every place taken: %v", err)
		}
		for range maxInFlight {
			c.lists.Release()
		}
		for range 2 * maxInFlight {
			must(c.ReadAll(t.Context(), Flow{}, keys, "a"))(t)
		}
		wantEqual(t, "left", c.lists.load(), load{})
	})
}
