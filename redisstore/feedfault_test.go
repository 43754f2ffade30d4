package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/event"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
)

// rested waits until the feed has all events, and its leader has looked at all agents and rests.
func (w tenant) rested(t *testing.T, s *Store) {
	t.Helper()
	wantFed(t, s, w.key, w.agent.ID)
	eventually(t, "the leader rests", func() bool {
		head := must(peek(t, s).HGetAll(t.Context(), s.keys.FeedHead(w.key.Organization)).Result())(t)
		return head["s"] != "" && head["u"] == "0"
	})
}

// A look that goes on may have passed the agent whose mark was lost.
func TestALookDuringWhichAMarkWasLostDoesNotCount(t *testing.T) {
	onTenant(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		w.rested(t, s)
		holdFeed(t, s, w.key.Organization)
		ctx, o, head := t.Context(), w.key.Organization, s.keys.FeedHead(w.key.Organization)
		d := feedsOf(s, s.config)
		a := &feed.ActiveFeed{Organization: o, Leading: feed.Leading{Token: "1000000"}}
		for _, lost := range []bool{false, true} {
			d.WriteEntry(ctx, a)
			must(peek(t, s).HSet(ctx, head, "s", 1).Result())(t) // long ago
			batch := must(d.Take(ctx, a))(t)
			if lost {
				a.Confirmed.Add(time.Hour.Milliseconds())
			}
			a.Entered.Store(0)
			d.WriteEntry(ctx, a)
			must(s.client.Run(ctx, flow{Owner: o}, feed.FinishLook, []string{head, s.keys.FeedInstances(o)},
				a.Leading.Token, batch.Now, feed.ArrivalTime.Milliseconds()))(t)
			if looked := must(peek(t, s).HExists(ctx, head, "s").Result())(t); !batch.Look || looked == lost {
				t.Errorf("a mark was lost: %t; the leader was to look: %t, and has looked: %t", lost, batch.Look, looked)
			}
		}
	})
}

// An event without a mark is found, whatever else Redis has of the feed: what an instance that was killed between a change and its mark
// leaves, what a failover lost, or what was written before Redis's clock went back.
func TestAnEventWithoutAMarkIsFound(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }
	for name, leave := range map[string]func(ctx context.Context, p redis.Pipeliner, s *Store, o uuid.UUID, entries []redis.Z){
		"an instance has gone, after the last look": func(ctx context.Context, p redis.Pipeliner, s *Store, o uuid.UUID, _ []redis.Z) {
			p.ZAdd(ctx, s.keys.FeedInstances(o), redis.Z{Score: float64(ago(time.Second)), Member: "gone"})
			p.HSet(ctx, s.keys.FeedHead(o), "s", ago(time.Minute))
		},
		"a failover lost what the instances sent": func(ctx context.Context, p redis.Pipeliner, s *Store, o uuid.UUID, entries []redis.Z) {
			for _, entry := range entries {
				entry.Score -= 1000
				p.ZAdd(ctx, s.keys.FeedInstances(o), entry)
			}
		},
		"a leader of an hour ahead is dead": func(ctx context.Context, p redis.Pipeliner, s *Store, o uuid.UUID, _ []redis.Z) {
			p.HSet(ctx, s.keys.FeedHead(o), "t", 1_000_000, "u", ago(-time.Hour), "s", 0)
		},
		"an instance of an hour ahead is dead": func(ctx context.Context, p redis.Pipeliner, s *Store, o uuid.UUID, _ []redis.Z) {
			p.ZAdd(ctx, s.keys.FeedInstances(o), redis.Z{Score: float64(ago(-time.Hour)), Member: "dead"})
		},
		"a look was an hour ahead": func(ctx context.Context, p redis.Pipeliner, s *Store, o uuid.UUID, _ []redis.Z) {
			p.HSet(ctx, s.keys.FeedHead(o), "s", ago(-time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onTenantWithCluster(t, withFeeds, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
				w.rested(t, s)                                                                       // no look that began before the change is under way
				must(withoutFeeds(t, s).SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t) // unmarked
				instances := s.keys.FeedInstances(w.key.Organization)
				entries := must(peek(t, s).ZRangeWithScores(t.Context(), instances, 0, -1).Result())(t)
				must(peek(t, s).Pipelined(t.Context(), func(p redis.Pipeliner) error {
					leave(t.Context(), p, s, w.key.Organization, entries)
					return nil
				}))(t)
				wantFed(t, s, w.key, w.agent.ID)
				eventually(t, "the dead instance is forgotten", func() bool {
					return errors.Is(peek(t, s).ZScore(t.Context(), instances, "dead").Err(), redis.Nil)
				})
			})
		})
	}
}

// stopping opens another instance, which may change the tenant's agents, has it do something, and closes it. It returns whether the
// instance has left the feed.
func (w tenant) stopping(t *testing.T, s *Store, do func(second *Store)) (left bool) {
	t.Helper()
	second := must(Open(s.config))(t)
	second.feeds.Enter(w.key.Organization)
	do(second)
	mustDo(t, second.Close())
	return errors.Is(peek(t, s).ZScore(t.Context(), s.keys.FeedInstances(w.key.Organization), second.feeds.Instance).Err(), redis.Nil)
}

func TestAnInstanceThatStopsMarksAllThatItHasChanged(t *testing.T) {
	onFed(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		holdFeed(t, s, w.key.Organization)
		const changed = feed.MaxMarks + 10
		left := w.stopping(t, s, func(second *Store) {
			a := second.feeds.Of(w.key.Organization)
			a.Mu.Lock()
			defer a.Mu.Unlock()
			for range changed {
				a.Marked[NewRootID()] = struct{}{}
			}
		})
		marked := must(peek(t, s).ZCard(t.Context(), s.keys.FeedMarked(w.key.Organization)).Result())(t)
		if left && marked < changed {
			t.Errorf("it has left, and marked %d agents of %d", marked, changed)
		}
	})
}

func TestAnInstanceThatStopsDoesNotLeaveWhereCallsMayStillRun(t *testing.T) {
	onTenant(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		f, keys := flow{Owner: w.key.Organization}, []string{s.keys.Events(w.agent.ID)}
		for name, test := range map[string]struct {
			do   func(second *Store)
			left bool
		}{
			"none":             {func(*Store) {}, true},
			"one that ended":   {func(second *Store) { second.feeds.After(f, keys, false) }, true},
			"one that is lost": {func(second *Store) { second.feeds.After(f, keys, true) }, false},
		} {
			if test.left { // in the time that it has
				eventually(t, name+": it leaves", func() bool { return w.stopping(t, s, test.do) })
			} else if w.stopping(t, s, test.do) {
				t.Errorf("%s: it has left", name)
			}
		}
	})
}

// An agent whose organization cannot be asked for at once is marked once it can.
func TestAnAgentIsMarkedWhenItsOrganizationIsKnown(t *testing.T) {
	t.Parallel()
	onMiniredis(t, withFeeds, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		w.rested(t, s)
		before := withoutFeeds(t, s)
		must(before.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
		s.feeds.Owners.Purge()
		record := s.keys.Agent(w.agent.ID)
		mustDo(t, peek(t, s).Rename(t.Context(), record, "elsewhere").Err())
		mustDo(t, peek(t, s).Set(t.Context(), record, "no hash", 0).Err()) // HGET fails
		s.feeds.After(flow{}, []string{s.keys.Events(w.agent.ID)}, false)
		time.Sleep(2 * feed.RetryAfter)
		mustDo(t, peek(t, s).Rename(t.Context(), "elsewhere", record).Err())
		wantFed(t, s, w.key, w.agent.ID)
	})
}

// A server that does not answer must leave the leader the time to append what others did.
func TestReadingTrailsCostsNoLease(t *testing.T) {
	t.Parallel()
	onMiniredis(t, withFeeds, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		second, waited := anotherInstance(t, s), make(chan time.Duration, 1)
		second.client.Redis().AddHook(pipelineHook(func(ctx context.Context, commands []redis.Cmder, _ redis.ProcessPipelineHook) error {
			began := time.Now()
			<-ctx.Done()
			waited <- time.Since(began)
			for _, c := range commands {
				c.SetErr(ctx.Err())
			}
			return ctx.Err()
		}))
		trail := &feed.Taken{Name: w.agent.ID.String()}
		second.feeds.ReadTrails(t.Context(), w.key.Organization, []*feed.Taken{trail})
		if waited := <-waited; waited > feed.LeaseTime*2/3 || trail.Failed == nil {
			t.Errorf("it waited %s, and failed with %v", waited, trail.Failed)
		}
	})
}

func TestADeletedOrganizationHasNoFeedAgain(t *testing.T) {
	onFed(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		mustDo(t, remove(t, s, w.key.Organization))
		o := w.key.Organization
		a := s.feeds.Of(o)
		a.Entered.Store(0)
		s.feeds.Enter(o)
		s.feeds.Mark(o, w.agent.ID)
		a.Used.Store(s.feeds.Now().Add(-feed.IdleFor).UnixNano())
		eventually(t, "the instance has left", func() bool {
			return len(s.feeds.All()) == 0 && peek(t, s).ZCard(t.Context(), s.keys.Feeds()).Val() == 0
		})
		wantEqual(t, "the keys that are left", keysKept(t, s), nil)
	})
}

func TestTheCursorOfAnAgentEndsWithIt(t *testing.T) {
	onTenantWithCluster(t, withFeeds, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		gone := newAgents(t, s, w.key, 2)
		wantFed(t, s, w.key, w.agent.ID, gone[0].ID, gone[1].ID)
		o, ctx := w.key.Organization, t.Context()
		for _, agent := range gone {
			tenant{agent: agent}.endRecord(t, s)
			removeEntries(t, s, s.keys.OrganizationAgents(o), agent.ID)
		}
		must(peek(t, s).HDel(ctx, s.keys.FeedHead(o), "s", "l").Result())(t) // the next leader looks at all agents, whatever look goes on
		must(s.SuspendAgent(ctx, w.key, w.agent.ID, "checking"))(t)
		eventually(t, "their cursors are gone", func() bool {
			left := must(peek(t, s).HKeys(ctx, s.keys.FeedCursors(o)).Result())(t)
			return slices.Equal(left, []string{w.agent.ID.String()})
		})
	})
}

// An event that cannot be written, or whose rendering panics, keeps back none of those after it.
func TestAnEventThatCannotBeWrittenIsToldAsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		instead func() ([]byte, error)
		panics  float64
	}{
		"an error": {func() ([]byte, error) { return nil, errors.New("no JSON") }, 0},
		"a panic":  {func() ([]byte, error) { panic("a fault of the program") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withFeeds
			cfg.render = func(e event.InFeed) ([]byte, error) {
				if e.Type == "agent.suspended" {
					return test.instead()
				}
				return e.JSON()
			}
			onTenant(t, cfg, func(t *testing.T, s *Store, w tenant) {
				must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
				must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
				wantFed(t, s, w.key, w.agent.ID)
				var types []string
				for _, e := range feedOf(t, s, w.key) {
					types = append(types, e.Type)
				}
				if !slices.Contains(types, kernel.EventsLost) || slices.Contains(types, "agent.suspended") || types[len(types)-1] != "agent.resumed" {
					t.Error(types)
				}
				wantEqual(t, "panics", counted(t, s.feeds.Metrics.Panics), test.panics)
			})
		})
	}
}

// A failover loses the end of a trail, and the next event gets an id of before it: the feed has it, and says what happened.
func TestATrailThatEndsBeforeItsCursorIsReadAgain(t *testing.T) {
	onTenant(t, withFeeds, func(t *testing.T, s *Store, w tenant) {
		w.rested(t, s)
		had := len(feedOf(t, s, w.key))
		ahead := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10) + "-0"
		must(peek(t, s).HSet(t.Context(), s.keys.FeedCursors(w.key.Organization), w.agent.ID.String(), ahead).Result())(t)
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
		must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		var since []string
		eventually(t, "the feed has what came since", func() bool {
			since = nil
			for _, e := range feedOf(t, s, w.key)[had:] {
				since = append(since, e.Type)
			}
			return slices.Contains(since, "agent.resumed")
		})
		want := []string{kernel.EventsLost, "agent.created", "session.created", "agent.suspended", "agent.resumed"}
		wantEqual(t, "the events since", since, want)
	})
}

// A feed whose server fails shows how long it has waited.
func TestAFeedWithoutAppendsShowsInMetrics(t *testing.T) {
	t.Parallel()
	onMiniredis(t, withFeeds, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		w.rested(t, s)
		head := s.keys.FeedHead(w.key.Organization)
		must(peek(t, s).Rename(t.Context(), head, "elsewhere").Result())(t)
		must(peek(t, s).Set(t.Context(), head, "no hash", 0).Result())(t)
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, "checking"))(t)
		eventually(t, "it shows", func() bool { return s.feeds.LongestWait() > 2*feed.RetryAfter })
		must(peek(t, s).Rename(t.Context(), "elsewhere", head).Result())(t)
		wantFed(t, s, w.key, w.agent.ID)
		eventually(t, "it is over", func() bool { return s.feeds.LongestWait() == 0 })
	})
}

func TestEventsAreLostOnlyBetweenTheCursorAndTheRest(t *testing.T) {
	t.Parallel()
	for next, lost := range map[string]bool{"5-2": false, "5-3": false, "5-4": true, "6-0": true} {
		trail := &feed.Taken{Cursor: "5-2"}
		trail.Take([]redis.XMessage{{ID: next}, {ID: "7-0"}})
		wantEqual(t, "whether events are lost when the trail begins at "+next, trail.Lost, lost)
	}
}

// A leader forgets that webhooks are to be woken once a replica has it, where writes are confirmed so.
func TestALeaderWakesWebhooksSoThatNoFailoverLosesIt(t *testing.T) {
	onEachPair(t, func(t *testing.T, p *redistest.Pair, _ func(*testing.T, *Store)) {
		s := pairStore(t, p, Replicated)
		d := feedsOf(s, s.config)
		a := &feed.ActiveFeed{Organization: NewRootID(), Leading: feed.Leading{Wake: feed.Debt{Owed: "5"}}}
		resume := p.SuspendReplica(t)
		if err := d.PayDebts(t.Context(), a); err == nil || a.Leading.Wake.Owed != "5" {
			t.Errorf("without a replica it has woken them: %v", err)
		}
		resume()
		eventually(t, "it has woken them", func() bool { return d.PayDebts(t.Context(), a) == nil && a.Leading.Wake.Paid == "5" })
	})
}
