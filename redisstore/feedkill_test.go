package redisstore

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// kill ends an instance as a crash does: nothing that it has yet to tell Redis gets there.
func kill(s *Store) {
	s.feeds.Work.Lock()
	s.feeds.Stop()
	s.feeds.Work.Unlock()
	_ = s.client.Close()
	s.feeds.Ended.Wait()
}

// letEntriesPass ends the entries of all instances, as 10 s do, and has the last look at all agents been before.
func letEntriesPass(t *testing.T, s *Store, organization uuid.UUID) {
	t.Helper()
	ctx, key := t.Context(), s.keys.FeedInstances(organization)
	past := float64(time.Now().Add(-time.Second).UnixMilli())
	for _, instance := range must(peek(t, s).ZRange(ctx, key, 0, -1).Result())(t) {
		if err := peek(t, s).ZAdd(ctx, key, redis.Z{Score: past, Member: instance}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := peek(t, s).HSet(ctx, s.keys.FeedHead(organization), "s", time.Now().Add(-time.Minute).UnixMilli()).Err(); err != nil {
		t.Fatal(err)
	}
}

// Two instances change ten agents; one after the other is killed, whatever it is doing. No event is lost, doubled or moved.
func TestNoEventIsLostWhenInstancesAreKilled(t *testing.T) {
	t.Parallel()
	keeping := withFeeds
	keeping.EventsKept = 5000
	onRealRedis(t, keeping, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		agents := []uuid.UUID{w.agent.ID}
		for range 9 {
			agents = append(agents, putAgentOf(t, s, w.key))
		}
		for round := range 6 {
			victim := must(Open(s.config))(t)
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			for i, instance := range []*Store{s, victim, victim} {
				group.Go(func() {
					for n := i; ctx.Err() == nil; n++ {
						agent := agents[n%len(agents)]
						_, _ = instance.SuspendAgent(context.Background(), w.key, agent, "checking")
						_, _ = instance.ResumeAgent(context.Background(), w.key, agent, "")
					}
				})
			}
			time.Sleep(time.Duration(37*(round+1)) * time.Millisecond) // when it is killed is what varies
			kill(victim)
			cancel()
			group.Wait()
		}
		letEntriesPass(t, s, w.key.Organization)
		wantFed(t, s, w.key, agents...)
	})
}
