package redisstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"remit/internal/event"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
)

// fed is what the tests look at of an event in a feed.
type fed struct {
	Agent    uuid.UUID `json:"agent_id"`
	ID       string    `json:"id"` // as in the agent's trail
	Type     string    `json:"type"`
	Sequence int64     `json:"seq"`
	Previous string    `json:"previous_hash"`
}

var withFeeds = Config{KeepsFeeds: true}

// onFed is onTenant for a tenant whose feed has all of its events.
func onFed(t *testing.T, cfg Config, test func(t *testing.T, s *Store, w tenant)) {
	t.Helper()
	onTenant(t, cfg, func(t *testing.T, s *Store, w tenant) {
		wantFed(t, s, w.key, w.agent.ID)
		test(t, s, w)
	})
}

// withoutFeeds returns a store on the same keys that keeps no feeds: what it writes is in no mark, as after the death of an instance between a change and its mark.
func withoutFeeds(t *testing.T, s *Store) *Store {
	t.Helper()
	cfg := s.config
	cfg.KeepsFeeds = false
	second := must(Open(cfg))(t)
	t.Cleanup(func() { _ = second.Close() })
	return second
}

func feedsOf(s *Store, cfg Config) *feed.Feeds {
	d := feed.New(cfg.feeds())
	d.Client = s.client
	return d
}

// leading waits until no other instance leads the organization's feed, and leads it.
func leading(t *testing.T, d *feed.Feeds, organization uuid.UUID) (leader *feed.ActiveFeed) {
	t.Helper()
	eventually(t, "it leads", func() bool {
		leader = &feed.ActiveFeed{Organization: organization}
		return d.Flush(t.Context(), leader) == nil && leader.Leading.Token != ""
	})
	return leader
}

// feedOf returns the whole feed of an organization, and checks its numbers and its chain.
func feedOf(t *testing.T, s *Store, key APIKey) []fed {
	t.Helper()
	var all []fed
	previous := event.NoHash
	for after := int64(0); ; {
		page := must(s.OrganizationEvents(t.Context(), key, after, 100))(t)
		for _, e := range page.Events {
			var read fed
			mustDo(t, json.Unmarshal(e.JSON, &read))
			after++
			if e.Sequence != after || read.Sequence != after || read.Previous != previous || read.Type != e.Type {
				t.Fatalf("after event %d of hash %s: %+v, %s", after-1, previous, e, e.JSON)
			}
			previous = fmt.Sprintf("%x", sha256.Sum256(e.JSON))
			read.ID = strings.TrimPrefix(read.ID, read.Agent.String()+":")
			all = append(all, read)
		}
		if len(page.Events) < 100 {
			if page.Last == after && page.Last > 0 && page.Hash != previous {
				t.Fatalf("the feed ends with hash %s, not %s", page.Hash, previous)
			}
			return all
		}
	}
}

// wantFed waits until the feed has every event of the agents' trails, and checks that it has each once, in the trail's order.
func wantFed(t *testing.T, s *Store, key APIKey, agents ...uuid.UUID) {
	t.Helper()
	want, total := map[uuid.UUID][]string{}, 0
	for _, agent := range agents {
		events, _ := must2(s.Events(t.Context(), Caller{Key: &key}, agent, "", 5000))(t)
		for _, e := range events {
			want[agent] = append(want[agent], e.ID)
		}
		total += len(events)
	}
	var got map[uuid.UUID][]string
	eventually(t, fmt.Sprintf("the feed has the %d events of %d agents", total, len(agents)), func() bool {
		feed := feedOf(t, s, key)
		got = map[uuid.UUID][]string{}
		for _, e := range feed {
			got[e.Agent] = append(got[e.Agent], e.ID)
		}
		return len(feed) >= total
	})
	wantEqual(t, "the events of each agent", got, want)
}

func TestAFeedHasEveryEventOfEveryAgentOnceAndInOrder(t *testing.T) {
	onEachRedisAndCluster(t, withFeeds, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100}), newTenant(t, s, NewSession{MaxActions: 1})
		agents := []uuid.UUID{w.agent.ID}
		for _, agent := range newAgents(t, s, w.key, 9) {
			agents = append(agents, agent.ID)
		}
		concurrently(t, len(agents), func(i int) {
			for range 5 {
				_, _ = s.SuspendAgent(context.Background(), w.key, agents[i], "checking")
				_, _ = s.ResumeAgent(context.Background(), w.key, agents[i], "")
			}
		})
		for range 12 {
			w.charge(t, s, 1, 0) // which comes to a limit
		}
		wantFed(t, s, w.key, agents...)
		wantFed(t, s, other.key, other.agent.ID)
	})
}

func TestAnEventComesSoon(t *testing.T) {
	onFed(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		last := must(s.OrganizationEvents(t.Context(), w.key, 0, 100))(t).Last
		came := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() { came <- s.AwaitOrganizationEvent(ctx, w.key.Organization, last) }()
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
		wantOutcome(t, "the wait for an event of the organization", came, nil)
	})
}

// What was written without a mark is found all the same: the next look at all agents finds it, which is that of the first leader.
func TestALookFindsWhatWasNeverMarked(t *testing.T) {
	onEachRedisAndCluster(t, withFeeds, func(t *testing.T, s *Store) {
		before := withoutFeeds(t, s)
		w := newTenant(t, before, NewSession{MaxActions: 10, MaxValue: 100})
		unmarked, marked := newAgents(t, before, w.key, 2), newAgents(t, s, w.key, 1)
		wantFed(t, s, w.key, w.agent.ID, unmarked[0].ID, unmarked[1].ID, marked[0].ID)
	})
}

// Agents that a leader had taken when it ended, and those that were marked, are the next leader's.
func TestAnotherInstanceGoesOnWhereALeaderEnded(t *testing.T) {
	onTenant(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		second := newAgents(t, s, w.key, 1)[0].ID
		wantFed(t, s, w.key, w.agent.ID, second)
		before := withoutFeeds(t, s)
		must(before.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
		must(before.SuspendAgent(t.Context(), w.key, second, "checking"))(t)
		// Another leader has marked both, has taken one, and ended.
		o := w.key.Organization
		d := feedsOf(s, s.config)
		dead := leading(t, d, o)
		dead.Marked = map[uuid.UUID]struct{}{w.agent.ID: {}, second: {}}
		if err := d.Flush(t.Context(), dead); err != nil || dead.Leading.Token == "" {
			t.Fatalf("%+v, %v", dead.Leading, err)
		}
		must(d.Client.Run(t.Context(), kernel.OwnFlow, feed.TakeAgents, []string{d.Keys.FeedHead(o), d.Keys.FeedMarked(o), d.Keys.FeedTaken(o),
			d.Keys.FeedCursors(o), d.Keys.FeedInstances(o)}, dead.Leading.Token, 100, 1, feed.ArrivalTime.Milliseconds()))(t)
		wantFed(t, s, w.key, w.agent.ID, second)
	})
}

func TestALeaderThatWasCutOffAppendsNothing(t *testing.T) {
	onFed(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		o := w.key.Organization
		d := feedsOf(s, s.config)
		stale := leading(t, d, o)
		mustDo(t, peek(t, s).HSet(t.Context(), s.keys.FeedHead(o), "u", 0).Err()) // its lease ends
		current := leading(t, d, o)
		suspended := Event{ID: "9999999999999-0", Type: "agent.suspended", Time: event.Timestamp(time.Now())}
		for name, test := range map[string]struct {
			leader *feed.ActiveFeed
			want   error
		}{"that was cut off": {stale, feed.ErrFeedLost}, "of now": {current, nil}} {
			p := &feed.Appending{Feeds: d, Feed: test.leader}
			mustDo(t, p.AddEvent(w.agent.ID, suspended))
			p.Agents.WriteString(w.agent.ID.String() + " - 0\n")
			wantError(t, "the leader "+name, p.Send(t.Context()), test.want)
		}
	})
}

// An agent that another organization names has no place in that one's feed.
func TestAFeedHasNoEventsOfAnotherOrganizationsAgent(t *testing.T) {
	onTenant(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		foreign := newTenant(t, s, roomy)
		s.feeds.Mark(w.key.Organization, foreign.agent.ID)
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
		wantFed(t, s, w.key, w.agent.ID)
		wantFed(t, s, foreign.key, foreign.agent.ID)
	})
}

// An organization without changes costs nothing: no instance has its feed in mind.
func TestAFeedThatRestsIsForgotten(t *testing.T) {
	onFed(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		a := s.feeds.Of(w.key.Organization)
		a.Used.Store(time.Now().Add(-feed.IdleFor).UnixNano())
		eventually(t, "the feed is forgotten", func() bool {
			return len(s.feeds.All()) == 0 && peek(t, s).ZCard(t.Context(), s.keys.Feeds()).Val() == 0
		})
	})
}

// A panic costs no feed its turn or its leader, and is reported once.
func TestAPanicStopsNoFeed(t *testing.T) {
	t.Parallel()
	onMiniredis(t, Config{}, func(t *testing.T, s *Store) {
		cfg, log := s.config, &bytes.Buffer{}
		cfg.KeepsFeeds, cfg.Log = true, slog.New(slog.NewTextHandler(log, nil))
		second := must(Open(cfg))(t)
		var once atomic.Bool // when it first reads trails
		second.client.Redis().AddHook(pipelineHook(func(ctx context.Context, commands []redis.Cmder, next redis.ProcessPipelineHook) error {
			if slices.ContainsFunc(commands, func(c redis.Cmder) bool { return c.Name() == "xrange" }) && !once.Swap(true) {
				panic("a fault of the program")
			}
			return next(ctx, commands)
		}))
		w, other := newTenant(t, second, roomy), newTenant(t, second, roomy)
		wantFed(t, second, w.key, w.agent.ID)
		wantFed(t, second, other.key, other.agent.ID)
		panics := counted(t, second.feeds.Metrics.Panics)
		mustDo(t, second.Close())
		if said := strings.Count(log.String(), "stack="); panics != 1 || said != 1 || len(second.feeds.Turns) != 0 {
			t.Errorf("%g panics, logged %d times, %d turns are gone", panics, said, len(second.feeds.Turns))
		}
	})
}

func counted(t *testing.T, metric prometheus.Metric) float64 {
	t.Helper()
	var now dto.Metric
	mustDo(t, metric.Write(&now))
	return now.GetCounter().GetValue() + now.GetGauge().GetValue()
}
