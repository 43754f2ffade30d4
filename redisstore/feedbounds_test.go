package redisstore

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/event"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

// holdFeed makes another instance, which does nothing, the leader of a feed until the function that it returns is called.
func holdFeed(t *testing.T, s *Store, organization uuid.UUID) (release func()) {
	t.Helper()
	client, key := peek(t, s), s.keys.FeedHead(organization)
	set := func(after time.Duration) {
		if err := client.HSet(context.Background(), key, "t", 1_000_000, "u", time.Now().Add(after).UnixMilli()).Err(); err != nil {
			t.Error(err)
		}
	}
	set(feed.LeaseTime / 2)
	ended := make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		for {
			select {
			case <-ended:
				set(-time.Second)
				return
			case <-time.After(feed.LeaseTime / 20):
				set(feed.LeaseTime / 2)
			}
		}
	})
	release = sync.OnceFunc(func() {
		close(ended)
		holding.Wait()
	})
	t.Cleanup(release)
	return release
}

// A trail keeps what the feed does not have, up to ten times as many events as else. Then it shrinks.
func TestATrailIsTrimmedOnlyOfWhatItsFeedHas(t *testing.T) {
	t.Parallel()
	const kept = 20
	for name, test := range map[string]struct {
		changes int
		lost    bool
	}{
		"up to ten times as many": {feed.UnfedFactor*kept - 10, false},
		"more than that":          {feed.UnfedFactor*kept + feed.SpareEvents + 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			onFed(t, Config{KeepsFeeds: true, EventsKept: kept}, func(t *testing.T, s *Store, w tenant) {
				had := len(feedOf(t, s, w.key))
				length := func() int { return int(peek(t, s).XLen(t.Context(), s.keys.Events(w.agent.ID)).Val()) }
				release := holdFeed(t, s, w.key.Organization)
				for range test.changes / 2 {
					must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
					must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
				}
				if n := length(); !test.lost && n < test.changes || n > feed.UnfedFactor*kept+feed.SpareEvents {
					t.Errorf("after %d changes that are in no feed the trail has %d events", test.changes, n)
				}
				release()
				newest := must(peek(t, s).XRevRangeN(t.Context(), s.keys.Events(w.agent.ID), "+", "-", 1).Result())(t)
				var fed []fed
				eventually(t, "the feed has the last change", func() bool {
					fed = feedOf(t, s, w.key)[had:]
					return len(fed) > 0 && fed[len(fed)-1].ID == newest[0].ID
				})
				if lost := fed[0].Type == kernel.EventsLost; lost != test.lost || !lost && len(fed) != test.changes {
					t.Errorf("of %d changes the feed has %d, lost %t", test.changes, len(fed), lost)
				}
				eventually(t, "the trail is trimmed", func() bool { return length() <= kept+feed.SpareEvents })
				if n := length(); n < kept {
					t.Errorf("the trail has %d events", n)
				}
			})
		})
	}
}

// A feed keeps no more events, and no more bytes of them, than it may, but always the last.
func TestAFeedKeepsItsBounds(t *testing.T) {
	t.Parallel()
	const most, room = feed.FeedFactor, feed.FeedFactor * feed.EventRoom // with EventsKept of 1
	for name, test := range map[string]struct{ size, events, least int }{
		"small events":      {10, 5 * most, most - 10},
		"large events":      {3000, 3 * most, 5},
		"one fills it all":  {2 * room, 3, 1},
		"as many as it may": {10, most - 3, most - 3},
	} {
		t.Run(name, func(t *testing.T) {
			onFed(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
				o := w.key.Organization
				cfg := s.config
				cfg.EventsKept = 1
				cfg.render = func(e event.InFeed) ([]byte, error) {
					return json.Marshal(map[string]any{"seq": e.Sequence, "padding": strings.Repeat("x", test.size)})
				}
				mustDo(t, peek(t, s).HSet(t.Context(), s.keys.FeedHead(o), "u", 0).Err())
				d := feedsOf(s, cfg)
				leader := leading(t, d, o)
				for range test.events {
					p := &feed.Appending{Feeds: d, Feed: leader}
					mustDo(t, p.AddEvent(w.agent.ID, Event{Type: "agent.changed"}))
					p.Agents.WriteString(w.agent.ID.String() + " - 0\n")
					mustDo(t, p.Send(t.Context()))
				}
				entries := must(peek(t, s).XRange(t.Context(), s.keys.Feed(o), "-", "+").Result())(t)
				bytes := 0
				for i, entry := range entries {
					e := records.FeedEntry(entry)
					bytes += len(e.JSON) + 64
					wantEqual(t, "the number of an event", e.Sequence, leader.Leading.Last-int64(len(entries)-1-i))
				}
				if n := len(entries); n < test.least || n > most || n > 1 && bytes > room {
					t.Errorf("it has %d events of %d bytes, want %d to %d of at most %d", n, bytes, test.least, most, room)
				}
				head := must(peek(t, s).HGetAll(t.Context(), s.keys.FeedHead(o)).Result())(t)
				if head["b"] != strconv.Itoa(bytes) || head["f"]+"-0" != entries[0].ID {
					t.Errorf("its head says %v of %d bytes from %s on", head, bytes, entries[0].ID)
				}
			})
		})
	}
}

// What a feed takes counts as held by its organization.
func TestTheMemoryOfAFeedIsCounted(t *testing.T) {
	onFed(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		held := func() int64 {
			a := s.core.Usage.Account(w.key.Organization)
			mustDo(t, s.core.SyncUsage(t.Context(), a))
			a.Mu.Lock()
			defer a.Mu.Unlock()
			return a.Known[kernel.BytesHeld]
		}
		before, key := held(), s.keys.FeedHead(w.key.Organization)
		mustDo(t, peek(t, s).HIncrBy(t.Context(), key, "b", 1_000_000).Err())
		wantEqual(t, "what 1,000,000 bytes more count as", held()-before, 1_000_000)
	})
}
