package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/event"
	"remit/money"
	"remit/redisstore/internal/feed"
)

var recordingDue = Config{KeepsFeeds: true, RecordsDue: true}

// withRunningClock is withClock for a clock that goes on by itself.
func withRunningClock(t *testing.T, cfg Config, test func(t *testing.T, s *Store, step func(ahead time.Duration))) {
	t.Helper()
	mini, start := miniredis.RunT(t), time.Now()
	var ahead atomic.Int64
	running, end := context.WithCancel(t.Context())
	var ticking sync.WaitGroup
	ticking.Go(func() {
		for ; running.Err() == nil; time.Sleep(5 * time.Millisecond) {
			mini.SetTime(time.Now().Add(time.Duration(ahead.Load())))
		}
	})
	defer ticking.Wait()
	defer end()
	test(t, openStore(t, cfg, "redis://"+mini.Addr(), nil), func(to time.Duration) {
		ahead.Store(int64(to - time.Since(start)))
		mini.SetTime(start.Add(to))
	})
}

// byTime returns the events that time alone has brought to an organization, by type and what they are about, and how often each is in its
// feed. It looks at nothing else: a request might record them.
func byTime(t *testing.T, s *Store, key APIKey) map[string]int {
	t.Helper()
	found := map[string]int{}
	for after := int64(0); ; {
		page := must(s.OrganizationEvents(t.Context(), key, after, 100))(t)
		for _, e := range page.Events {
			var read struct {
				Actor       event.Actor `json:"actor"`
				Type        string      `json:"type"`
				Request     string      `json:"request_id"`
				Session     uuid.UUID   `json:"session_id"`
				Transaction uuid.UUID   `json:"transaction_id"`
				Lease       uuid.UUID   `json:"lease_id"`
				Child       uuid.UUID   `json:"child_session_id"`
			}
			mustDo(t, json.Unmarshal(e.JSON, &read))
			after++
			if read.Actor.Type != event.ByTime {
				continue
			}
			if read.Request != "" || read.Actor.ID != uuid.Nil {
				t.Errorf("%s names a request or who made it", e.JSON)
			}
			about := read.Session
			for _, id := range []uuid.UUID{read.Transaction, read.Lease, read.Child} {
				if id != uuid.Nil {
					about = id
				}
			}
			found[fmt.Sprint(read.Type, " ", about)]++
		}
		if len(page.Events) < 100 {
			return found
		}
	}
}

// wantByTime waits until time has brought these events, and nothing else.
func wantByTime(t *testing.T, s *Store, key APIKey, want ...string) {
	t.Helper()
	found, once := map[string]int{}, map[string]int{}
	for _, what := range want {
		once[what] = 1
	}
	eventually(t, fmt.Sprintf("%q", want), func() bool {
		found = byTime(t, s, key)
		return len(found) >= len(want)
	})
	wantEqual(t, "what time has brought, and how often", found, once)
}

// wantStored waits until a hash has these fields.
func wantStored(t *testing.T, s *Store, key string, want map[string]string) {
	t.Helper()
	var got map[string]string
	eventually(t, fmt.Sprint(key, want), func() bool {
		got = peek(t, s).HGetAll(t.Context(), key).Val()
		for field, value := range want {
			if got[field] != value {
				return false
			}
		}
		return true
	})
}

func TestWhatTimeBringsIsRecordedUnasked(t *testing.T) {
	onTenantWithCluster(t, recordingDue, NewSession{MaxActions: 100, MaxValue: 100, MaxLease: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		must(s.SetBudget(t.Context(), w.key, 1000, BudgetForever))(t)
		brief := w.beginning(5)
		brief.Lifetime = time.Second
		hold := must(s.Begin(t.Context(), w.exchange(t, s).AccessToken, brief))(t)
		brief.Lifetime = 3 * time.Second // no entry of its own
		later := must(s.Begin(t.Context(), w.exchange(t, s).AccessToken, brief))(t)
		lease := must(s.GrantLease(t.Context(), w.byKey(), w.session.ID, NewLease{MaxActions: 1, MaxValue: 7, Lifetime: time.Second}))(t)
		root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 60, Lifetime: 2 * time.Second}))(t)
		child := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{
			Agent: newAgents(t, s, w.key, 1)[0].ID, Parent: root.ID, MaxActions: 5, MaxValue: 20, Lifetime: time.Second}))(t)
		must(s.Charge(t.Context(), w.byKey(), child.ID, Charge{Count: 1, Value: 3}))(t)

		wantByTime(t, s, w.key, "transaction.expired "+hold.ID.String(), "transaction.expired "+later.ID.String(), "lease.expired "+lease.ID.String(), "session.expired "+root.ID.String(),
			"session.expired "+child.ID.String(), "session.child_closed "+child.ID.String())
		wantStored(t, s, s.keys.OrganizationBudget(w.key.Organization), map[string]string{"reserved": "0", "used": "3"})
		wantStored(t, s, s.keys.Session(w.agent.ID, w.session.ID), map[string]string{"h": "", "lv": "", "v": "7"})
		open := s.keys.OrganizationOpen(w.key.Organization)
		eventually(t, "one session is among the open ones", func() bool { return len(indexed(t, s, open)) == 1 })
		wantIndexed(t, s, open, w.session.ID)
		eventually(t, "the queue waits for what is due later", func() bool {
			at := peek(t, s).ZScore(t.Context(), s.keys.DueQueue(), string(w.key.Organization[:])).Val()
			return int64(at) > time.Now().Add(20*time.Second).UnixMilli()
		})
		wantEqual(t, "for how long something is due", s.recorder.lag(), 0)
	})
}

// An instance that ends between the step that stores what is due and the note of it in the queue leaves that to the next leader.
func TestWhatIsDueIsNotedThoughTheLeaderEnds(t *testing.T) {
	onTenantOf(t, recordingDue, NewSession{MaxActions: 1, Lifetime: time.Hour}, func(t *testing.T, s *Store, w tenant) {
		queue, member := s.keys.DueQueue(), string(w.key.Organization[:])
		eventually(t, "it is noted", func() bool { return peek(t, s).ZScore(t.Context(), queue, member).Err() == nil })
		w.rested(t, s)
		at := int64(peek(t, s).ZScore(t.Context(), queue, member).Val())
		must(peek(t, s).ZRem(t.Context(), queue, member).Result())(t)
		must(peek(t, s).HSet(t.Context(), s.keys.FeedHead(w.key.Organization), "d", at).Result())(t)
		must(peek(t, s).ZIncrBy(t.Context(), s.keys.Feeds(), 1, member).Result())(t)
		eventually(t, "another leader has noted it", func() bool {
			return int64(peek(t, s).ZScore(t.Context(), queue, member).Val()) == at &&
				!peek(t, s).HExists(t.Context(), s.keys.FeedHead(w.key.Organization), "d").Val()
		})
	})
}

// A failover that loses the end of an organization's feed loses what those events made due; the agents' trails are on other servers.
func TestWhatAFailoverLostIsDueAgain(t *testing.T) {
	t.Parallel()
	onRealRedis(t, recordingDue, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, Lifetime: time.Hour})
		wantFed(t, s, w.key, w.agent.ID)
		w.rested(t, s)
		o, c := w.key.Organization, peek(t, s)
		kept := map[string]string{}
		for _, key := range []string{s.keys.Feed(o), s.keys.FeedHead(o), s.keys.FeedCursors(o), s.keys.FeedMarked(o), s.keys.FeedTaken(o),
			s.keys.FeedInstances(o), s.keys.Due(o)} {
			kept[key] = c.Dump(t.Context(), key).Val()
		}
		brief := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: 14 * time.Second}))(t) // beyond what clocks may differ by
		wantFed(t, s, w.key, w.agent.ID)
		for key, dump := range kept {
			must(c.Del(t.Context(), key).Result())(t)
			if dump != "" {
				must(c.Restore(t.Context(), key, 0, dump).Result())(t)
			}
		}
		must(c.ZRem(t.Context(), s.keys.DueQueue(), string(o[:])).Result())(t)
		deadline := time.Now().Add(40 * time.Second)
		for byTime(t, s, w.key)["session.expired "+brief.ID.String()] != 1 {
			if time.Now().After(deadline) {
				t.Fatal("its expiry is not recorded")
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

func TestAPeriodThatEndsIsRecordedUnasked(t *testing.T) {
	t.Parallel()
	withRunningClock(t, recordingDue, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		must(s.SetBudget(t.Context(), w.key, 1000, BudgetDay))(t)
		root := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 10, MaxValue: 60, Lifetime: time.Minute}))(t)
		must(s.Charge(t.Context(), w.byKey(), root.ID, Charge{Count: 1, Value: 30}))(t)
		w.end(t, s, root.ID)
		step(25 * time.Hour)
		wantByTime(t, s, w.key, "budget.period_ended "+uuid.Nil.String(), "session.expired "+w.session.ID.String())
		step(49 * time.Hour) // nothing was used on this day
		eventually(t, "the next end is awaited", func() bool {
			at := peek(t, s).ZScore(t.Context(), s.keys.DueQueue(), string(w.key.Organization[:])).Val()
			return time.UnixMilli(int64(at)).After(time.Now().Add(49 * time.Hour))
		})
		wantByTime(t, s, w.key, "budget.period_ended "+uuid.Nil.String(), "session.expired "+w.session.ID.String())
	})
}

// A session in which a hold expired unsettled closes 20 s later: a late commit is still charged there.
func TestASessionWaitsForALateSettlementBeforeItCloses(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		withRunningClock(t, recordingDue, func(t *testing.T, s *Store, step func(time.Duration)) {
			w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Hour})
			child := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 50,
				Lifetime: time.Minute}))(t)
			token := w.exchange(t, s).AccessToken
			n := w.beginning(20)
			n.Session, n.Lifetime = child.ID, 70*time.Second
			hold := must(s.Begin(t.Context(), token, n))(t)
			parent := s.keys.Session(w.agent.ID, w.session.ID)
			step(75 * time.Second)
			wantByTime(t, s, w.key, "session.expired "+child.ID.String(), "transaction.expired "+hold.ID.String())
			want := map[string]string{"dv": "0", "v": "0"}
			if late {
				must(s.Commit(t.Context(), token, hold.ID, Commit{Value: new(money.MicroUSD(12))}))(t)
				want["v"] = "12"
			}
			wantStored(t, s, parent, map[string]string{"dv": "50", "v": "50"})
			step(100 * time.Second)
			wantStored(t, s, parent, want)
		})
	}
}

// A part whose session was never created comes back, and so does that of a revoked agent's session.
func TestPartsComeBackUnasked(t *testing.T) {
	t.Parallel()
	withRunningClock(t, recordingDue, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, Lifetime: time.Hour})
		w.child(t, s, w.session.ID, 10, 20)
		revoked := newAgents(t, s, w.key, 1)[0]
		must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: revoked.ID, Parent: w.session.ID, MaxActions: 10, MaxValue: 30, Lifetime: time.Hour}))(t)
		must(s.RevokeAgent(t.Context(), w.key, revoked.ID))(t)
		parent := s.keys.Session(w.agent.ID, w.session.ID)
		step(3 * time.Second)
		wantStored(t, s, parent, map[string]string{"dv": "20"})
		step(10*time.Minute + 3*time.Second) // the child has expired
		wantStored(t, s, parent, map[string]string{"dv": "0"})
		n := NewSession{Agent: w.agent.ID, Parent: w.session.ID, MaxActions: 1, MaxValue: 40, Lifetime: time.Hour}
		must(s.setAside(t.Context(), setAsidePart, ownActor(w.key.Organization, w.agent.ID), NewID(n.Agent), n))(t)
		wantStored(t, s, parent, map[string]string{"dv": "40"})
		step(11 * time.Minute)
		wantStored(t, s, parent, map[string]string{"dv": "0"})
	})
}

// A session that waits for its children is looked at again after a minute, one that could not be settled much sooner.
func TestASessionThatCouldNotBeSettledIsSoonLookedAtAgain(t *testing.T) {
	t.Parallel()
	for _, why := range []string{"expired", "revoked", "expired with a child"} {
		withRunningClock(t, recordingDue, func(t *testing.T, s *Store, step func(time.Duration)) {
			w := newTenant(t, s, NewSession{MaxActions: 1, Lifetime: 24 * time.Hour})
			n := NewSession{Agent: newAgents(t, s, w.key, 1)[0].ID, MaxActions: 1, MaxValue: 60, Lifetime: time.Hour}
			must(s.SetBudget(t.Context(), w.key, 1000, BudgetForever))(t)
			n.Parent = must(s.CreateSession(t.Context(), w.key, n))(t).ID
			c, budget := peek(t, s), s.keys.OrganizationBudget(w.key.Organization)
			broken := budget
			if why == "expired with a child" {
				must(s.CreateChildSession(t.Context(), w.byKey(), n))(t)
				broken = s.keys.Parts(n.Agent, n.Parent)
			}
			must(c.Rename(t.Context(), broken, "broken").Result())(t)
			must(c.Set(t.Context(), broken, "", 0).Result())(t)
			if why == "revoked" {
				must(s.RevokeAgent(t.Context(), w.key, n.Agent))(t)
			} else {
				step(time.Hour + 3*time.Second)
			}
			entries := func(from time.Duration) int64 { // chunks are of 2 s
				now, due := c.Time(t.Context()).Val(), s.keys.Due(w.key.Organization)
				return c.ZCount(t.Context(), due, fmt.Sprint(now.Add(from).UnixMilli()), fmt.Sprint(now.Add(5*time.Minute).UnixMilli())).Val()
			}
			eventually(t, "it is to be looked at again", func() bool { return entries(3*time.Second) > 0 })
			wantEqual(t, why+": what is looked at again later", entries(retryAfter+2*time.Second), 0)
			must(c.Rename(t.Context(), "broken", broken).Result())(t)
			step(2 * time.Hour)
			wantStored(t, s, budget, map[string]string{"reserved": "0"})
		})
	}
}

// What is recorded stays when Redis's clock goes back.
func TestWhatIsRecordedStaysWhenTheClockGoesBack(t *testing.T) {
	t.Parallel()
	withRunningClock(t, recordingDue, func(t *testing.T, s *Store, step func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 10, Lifetime: time.Hour})
		step(2 * time.Hour)
		wantByTime(t, s, w.key, "session.expired "+w.session.ID.String())
		step(0)
		wantEqual(t, "its status", must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Status, Expired)
		wantError(t, "a charge", errOf(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1})), &NotActiveError{Expired})
		fresh := must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Minute}))(t)
		step(63 * time.Second)
		wantByTime(t, s, w.key, "session.expired "+w.session.ID.String(), "session.expired "+fresh.ID.String())
	})
}

// letItClose moves what is stored of a session as if its last hold or lease that expired unsettled had done so a minute ago.
func letItClose(t *testing.T, s *Store, p place) {
	t.Helper()
	key := s.keys.Session(p.agent, p.session)
	if peek(t, s).HExists(t.Context(), key, "xu").Val() {
		must(peek(t, s).HSet(t.Context(), key, "xu", time.Now().Add(-time.Minute).UnixMilli()).Result())(t)
	}
}

// However many holds a session has, it takes one entry for a time; and entries of one time share chunks.
func TestEntriesOfATimeShareChunks(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		o := newOrganization(t, s).Organization
		keys := []string{s.keys.Organization(o), s.keys.Due(o)}
		at := time.Now().Add(time.Hour).Truncate(2 * time.Second).UnixMilli()
		add := func(entries ...string) {
			must(s.client.Run(t.Context(), flow{Owner: o}, takeDue, keys, 0, strings.Join(entries, "")))(t)
		}
		first, second := NewRootID(), NewRootID()
		for i := range int64(3) {
			add(feed.DueAt(feed.DueSession, first, at+i), feed.DueAt(feed.DueSession, first, at+i+100), feed.DueAt(feed.DueParts, first, at))
			add(feed.DueAt(feed.DueSession, second, at))
		}
		add(feed.DueAt(feed.DueSession, first, at+2000))
		add(feed.DueAt(feed.DueSession, first, at+4000)) // alone in its time, as in the one before
		chunks := peek(t, s).ZRangeWithScores(t.Context(), s.keys.Due(o), 0, -1).Val()
		if len(chunks) != 3 || chunks[0].Score != float64(at+2000) || chunks[1].Score != float64(at+4000) || chunks[2].Score != float64(at+6000) {
			t.Fatalf("%v", chunks)
		}
		entries := must(feed.ReadDue([]string{chunks[0].Member.(string)}))(t)
		if len(chunks[0].Member.(string)) != 14+3*17 || len(entries) != 3 {
			t.Errorf("the first time has %v", entries)
		}
		want := 3
		for range 300 {
			add(feed.DueAt(feed.DueSession, NewRootID(), at))
			want++
		}
		score := fmt.Sprint(at + 2000)
		all := peek(t, s).ZRangeByScore(t.Context(), s.keys.Due(o), &redis.ZRangeBy{Min: score, Max: score}).Val()
		if entries := must(feed.ReadDue(all))(t); len(all) != 2 || len(entries) != want {
			t.Errorf("%d entries in %d chunks, want %d in two", len(entries), len(all), want)
		}
	})
}
