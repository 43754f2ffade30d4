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
)

// holdFeed makes another instance, which does nothing, the leader of a feed until the function that it returns is called.
func holdFeed(t *testing.T, s *Store, organization uuid.UUID) (release func()) {
	t.Helper()
	client, key := peek(t, s), s.keys.feedHead(organization)
	set := func(after time.Duration) {
		if err := client.HSet(context.Background(), key, "t", 1_000_000, "u", time.Now().Add(after).UnixMilli()).Err(); err != nil {
			t.Error(err)
		}
	}
	set(leaseTime / 2)
	ended := make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		for {
			select {
			case <-ended:
				set(-time.Second)
				return
			case <-time.After(leaseTime / 20):
				set(leaseTime / 2)
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
		"up to ten times as many": {unfedFactor*kept - 10, false},
		"more than that":          {unfedFactor*kept + spareEvents + 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keeping := withFeeds
			keeping.EventsKept = kept
			onEachRedis(t, keeping, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
				wantFed(t, s, w.key, w.agent.ID)
				had := len(feedOf(t, s, w.key))
				length := func() int { return int(peek(t, s).XLen(t.Context(), s.keys.events(w.agent.ID)).Val()) }
				release := holdFeed(t, s, w.key.Organization)
				for range test.changes / 2 {
					must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
					must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
				}
				if n := length(); !test.lost && n < test.changes || n > unfedFactor*kept+spareEvents {
					t.Errorf("after %d changes that are in no feed the trail has %d events", test.changes, n)
				}
				release()
				newest := newestEvent(t, s, w.agent.ID)
				var fed []fed
				eventually(t, "the feed has the last change", func() bool {
					fed = feedOf(t, s, w.key)[had:]
					return len(fed) > 0 && fed[len(fed)-1].ID == newest
				})
				if lost := fed[0].Type == EventsLost; lost != test.lost || !lost && len(fed) != test.changes {
					t.Errorf("of %d changes the feed has %d, lost %t", test.changes, len(fed), lost)
				}
				eventually(t, "the trail is trimmed", func() bool { return length() <= kept+spareEvents })
				if n := length(); n < kept {
					t.Errorf("the trail has %d events", n)
				}
			})
		})
	}
}

func newestEvent(t *testing.T, s *Store, agent uuid.UUID) string {
	t.Helper()
	newest := must(peek(t, s).XRevRangeN(t.Context(), s.keys.events(agent), "+", "-", 1).Result())(t)
	if len(newest) == 0 {
		t.Fatal("the trail is empty")
	}
	return newest[0].ID
}

// leaderOf returns a leader of the feed that appends what the test wants.
func leaderOf(t *testing.T, s *Store, cfg Config, organization uuid.UUID) (*feeds, *activeFeed) {
	t.Helper()
	d := newFeeds(cfg)
	d.client = s.client
	if err := peek(t, s).HSet(t.Context(), s.keys.feedHead(organization), "u", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var leader *activeFeed
	eventually(t, "it leads", func() bool {
		leader = &activeFeed{organization: organization}
		return d.flush(t.Context(), leader) == nil && leader.leading.token != ""
	})
	return d, leader
}

// A feed keeps no more events, and no more bytes of them, than it may, but always the last.
func TestAFeedKeepsItsBounds(t *testing.T) {
	t.Parallel()
	const most, room = feedFactor, feedFactor * eventRoom // with EventsKept of 1
	for name, test := range map[string]struct{ size, events, least int }{
		"small events":      {10, 5 * most, most - 10},
		"large events":      {3000, 3 * most, 5},
		"one fills it all":  {2 * room, 3, 1},
		"as many as it may": {10, most - 3, most - 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, withFeeds, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
				o := w.key.Organization
				cfg := s.config
				cfg.EventsKept = 1
				cfg.render = func(e event.InFeed) ([]byte, error) {
					return json.Marshal(map[string]any{"seq": e.Sequence, "padding": strings.Repeat("x", test.size)})
				}
				wantFed(t, s, w.key, w.agent.ID)
				d, leader := leaderOf(t, s, cfg, o)
				for range test.events {
					p := &appending{feeds: d, feed: leader}
					if err := p.addEvent(w.agent.ID, Event{Type: "agent.changed"}); err != nil {
						t.Fatal(err)
					}
					p.agents.WriteString(w.agent.ID.String() + " - 0\n")
					if err := p.send(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				wantBounded(t, s, o, leader.leading.last, test.least, most, room)
			})
		})
	}
}

// wantBounded checks a feed's size against what its head says and what it may be.
func wantBounded(t *testing.T, s *Store, organization uuid.UUID, last int64, least, most, room int) {
	t.Helper()
	entries := must(peek(t, s).XRange(t.Context(), s.keys.feed(organization), "-", "+").Result())(t)
	head := must(peek(t, s).HGetAll(t.Context(), s.keys.feedHead(organization)).Result())(t)
	bytes := 0
	for i, entry := range entries {
		if e := feedEntry(entry); e.Sequence != last-int64(len(entries)-1-i) {
			t.Fatalf("event %d at %d of %d, the last is %d", e.Sequence, i, len(entries), last)
		} else {
			bytes += len(e.JSON) + 64
		}
	}
	if n := len(entries); n < least || n > most || n > 1 && bytes > room {
		t.Errorf("it has %d events of %d bytes, want %d to %d of at most %d", n, bytes, least, most, room)
	}
	if head["b"] != strconv.Itoa(bytes) || head["f"]+"-0" != entries[0].ID {
		t.Errorf("its head says %v of %d bytes from %s on", head, bytes, entries[0].ID)
	}
}

// What a feed takes counts as held by its organization.
func TestTheMemoryOfAFeedIsCounted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, withFeeds, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		wantFed(t, s, w.key, w.agent.ID)
		held := func() int64 {
			a := s.usage.account(w.key.Organization)
			if err := s.syncUsage(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.known[bytesHeld]
		}
		before, key := held(), s.keys.feedHead(w.key.Organization)
		if err := peek(t, s).HIncrBy(t.Context(), key, "b", 1_000_000).Err(); err != nil {
			t.Fatal(err)
		}
		if grown := held() - before; grown != 1_000_000 {
			t.Errorf("1,000,000 bytes more count as %d", grown)
		}
	})
}
