package redisstore

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/records"
	"remit/test/redistest"
)

// newest returns the id of the newest event of the tenant's agent.
func (w tenant) newest(t *testing.T, s *Store) string {
	t.Helper()
	events := w.eventsOf(t, s, w.agent.ID)
	return events[len(events)-1].ID
}

// await waits for an event of the agent in a goroutine, and returns the result.
func await(ctx context.Context, s *Store, agent uuid.UUID, after string) <-chan error {
	came := make(chan error, 1)
	go func() { came <- s.AwaitEvent(ctx, agent, after) }()
	return came
}

// wantOutcome checks the result of a wait, within 10 s.
func wantOutcome(t *testing.T, what string, came <-chan error, want error) {
	t.Helper()
	select {
	case err := <-came:
		wantError(t, what, err, want)
	case <-time.After(10 * time.Second):
		t.Errorf("%s: it waits still", what)
	}
}

func TestAwaitEventWakesWhenAnotherStoreWritesOne(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		other, second := newTenant(t, s, NewSession{MaxActions: 1}), anotherInstance(t, s)
		for range 2 {
			came := await(t.Context(), s, w.agent.ID, w.newest(t, s))
			unmoved := await(t.Context(), s, other.agent.ID, other.newest(t, s))
			eventually(t, "they wait", func() bool { return s.Waiters(w.agent.ID) == 1 && s.Waiters(other.agent.ID) == 1 })
			w.newSession(t, second, time.Hour)
			wantOutcome(t, "its agent's event", came, nil)
			wantEqual(t, "how many another agent's event woke", len(unmoved), 0)
			other.newSession(t, second, time.Hour)
			wantOutcome(t, "the other agent's event", unmoved, nil)
		}
	})
}

func TestAwaitEventEndsWithItsContext(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		ctx, cancel := context.WithCancel(t.Context())
		left := await(ctx, s, w.agent.ID, w.newest(t, s))
		stays := await(t.Context(), s, w.agent.ID, w.newest(t, s))
		none := await(ctx, s, NewRootID(), "") // an agent that does not exist has no event
		eventually(t, "they wait", func() bool { return s.Waiters(w.agent.ID) == 2 })
		cancel()
		wantOutcome(t, "cancelled", left, context.Canceled)
		wantOutcome(t, "cancelled, of no agent", none, context.Canceled)
		timed, stop := context.WithTimeout(t.Context(), 2*records.PollPause)
		defer stop()
		wantOutcome(t, "at its deadline", await(timed, s, w.agent.ID, w.newest(t, s)), context.DeadlineExceeded)
		w.newSession(t, s, time.Hour)
		wantOutcome(t, "the one that stays", stays, nil)
	})
}

func TestAwaitEventEndsWhenTheStoreIsClosed(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		second, newest := anotherInstance(t, s), w.newest(t, s)
		var came []<-chan error
		for range 5 {
			came = append(came, await(t.Context(), second, w.agent.ID, newest))
		}
		eventually(t, "they wait", func() bool { return second.Waiters(w.agent.ID) == 5 })
		for range 2 {
			_ = second.Close()
		}
		for _, one := range append(came, await(t.Context(), second, w.agent.ID, newest)) {
			wantOutcome(t, "closed", one, ErrUnavailable)
		}
		wantEqual(t, "how many wait still", second.Waiters(w.agent.ID), 0)
		wantError(t, "a charge", errOf(second.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1})), ErrUnavailable)
	})
}

// Not parallel: it counts goroutines, and other tests have some of this kind.
func TestWaitingLeavesNoGoroutineBehind(t *testing.T) {
	url := "redis://" + miniredis.RunT(t).Addr()
	pollers := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "records.(*Reader).pollTrails(")
	}
	for name, end := range map[string]func(*testing.T, *Store, tenant, context.CancelFunc){
		"an event":    func(t *testing.T, s *Store, w tenant, _ context.CancelFunc) { w.newSession(t, s, time.Hour) },
		"its context": func(_ *testing.T, _ *Store, _ tenant, cancel context.CancelFunc) { cancel() },
		"Close":       func(_ *testing.T, s *Store, _ tenant, _ context.CancelFunc) { _ = s.Close() },
	} {
		s := openStore(t, Config{}, url, nil)
		w := newTenant(t, s, NewSession{MaxActions: 1})
		reader := anotherInstance(t, s) // which stays open

		for range 2 { // the second starts the polling again
			ctx, cancel := context.WithCancel(t.Context())
			var came []<-chan error
			for range 10 {
				came = append(came, await(ctx, s, w.agent.ID, w.newest(t, reader)))
			}
			if name != "Close" || s.Ping(ctx) == nil {
				eventually(t, "they wait", func() bool { return s.Waiters(w.agent.ID) == 10 })
				eventually(t, "one polls", func() bool { return pollers() == 1 })
			}
			if n := pollers(); n > 1 {
				t.Errorf("%s: %d poll", name, n)
			}
			end(t, s, w, cancel)
			for _, one := range came {
				<-one
			}
			cancel()
			eventually(t, "no goroutine polls after "+name, func() bool { return pollers() == 0 })
		}
	}
}

// pollHook counts the polls of the trails, and how many trails each reads.
type pollHook struct {
	batchHook
	polled func(trails int)
}

func (h pollHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() == "xrevrange" {
			h.polled(len(commands))
		}
		return next(ctx, commands)
	}
}

func TestOnePollServesManyWaiters(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	s := openLeastPrivileged(t, Config{}, realRedis)
	const agents, waiters = 3, 300
	var polls, trails atomic.Int64
	store := watched(t, s, func(string) redis.Hook {
		return pollHook{polled: func(n int) {
			polls.Add(1)
			trails.Add(int64(n))
		}}
	})
	began := time.Now()
	var tenants []tenant
	var came []<-chan error
	for range agents {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		tenants = append(tenants, w)
		for range waiters / agents {
			came = append(came, await(t.Context(), store, w.agent.ID, w.newest(t, s)))
		}
	}
	eventually(t, "all have been polled a few times", func() bool { return polls.Load() >= 4 })
	seen, n := trails.Load(), polls.Load()
	if most := int64(time.Since(began)/records.PollPause) + 1; n > most || seen > agents*n {
		t.Errorf("%d looks at %d trails, want at most %d looks at %d each", n, seen, most, agents)
	}
	for _, w := range tenants {
		w.newSession(t, s, time.Hour)
	}
	for _, one := range came {
		wantOutcome(t, "one of many", one, nil)
	}
}

// A reader with a cursor beyond a lost trail would read nothing, wait, be woken and read nothing again, forever.
func TestAwaitEventWaitsWhenTheTrailIsLost(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		stays := await(t.Context(), s, w.agent.ID, w.newest(t, s))
		wantOutcome(t, "before", await(t.Context(), s, w.agent.ID, "0-1"), nil)
		must(peek(t, s).Del(t.Context(), s.keys.Events(w.agent.ID)).Result())(t)
		eventually(t, "it waits again", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), records.PollPause/4)
			defer cancel()
			return s.AwaitEvent(ctx, w.agent.ID, "0-1") == context.DeadlineExceeded
		})
		behind := await(t.Context(), s, w.agent.ID, "0-1")
		w.newSession(t, s, time.Hour)
		wantOutcome(t, "who was behind", behind, nil)
		wantOutcome(t, "who was not", stays, nil)
	})
}

func TestAPanicWhilePollingIsReportedToWaitersAndPollingContinues(t *testing.T) {
	t.Parallel()
	s := openStore(t, Config{}, "redis://"+miniredis.RunT(t).Addr(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 1})
	var breaks atomic.Bool
	store := watched(t, s, func(string) redis.Hook {
		return pollHook{polled: func(int) {
			if breaks.Load() {
				panic("a broken poll")
			}
		}}
	})
	for range 2 {
		var came []<-chan error
		for range 3 {
			came = append(came, await(t.Context(), store, w.agent.ID, w.newest(t, s)))
		}
		eventually(t, "they wait", func() bool { return store.Waiters(w.agent.ID) == 3 })
		breaks.Store(true)
		for _, one := range came {
			if err := <-one; err == nil || !strings.Contains(err.Error(), "panic: a broken poll") {
				t.Errorf("%v", err)
			}
		}
		breaks.Store(false)
		next := await(t.Context(), store, w.agent.ID, w.newest(t, s))
		w.newSession(t, s, time.Hour)
		wantOutcome(t, "the next", next, nil)
	}
}

func TestAwaitEventOutlastsAnOutage(t *testing.T) {
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		came := await(t.Context(), s, w.agent.ID, w.newest(t, s))
		eventually(t, "it waits", func() bool { return s.Waiters(w.agent.ID) == 1 })
		upstream := p.Upstream()
		p.GoDown()
		wantError(t, "a ping in the outage", s.Ping(t.Context()), ErrUnavailable)
		p.ComeUp(t, upstream)
		eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
		wantEqual(t, "how many the outage ended", len(came), 0)
		w.newSession(t, s, time.Hour)
		wantOutcome(t, "after the outage", came, nil)
	})
}

// Whatever is written between a reader's page and its wait is not missed.
func TestReadingAndWaitingInTurnMissesNoEvent(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		const sessions = 7
		var writer sync.WaitGroup
		writer.Go(func() {
			for range sessions {
				w.newSession(t, s, time.Hour)
			}
		})
		defer writer.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for after, seen := "", 0; seen < sessions+1; {
			mustDo(t, s.AwaitEvent(ctx, w.agent.ID, after))
			events, _ := must2(s.Events(ctx, w.byKey(), w.agent.ID, after, 3))(t)
			for _, e := range events {
				if e.Type == "session.created" {
					seen++
				}
			}
			after = events[len(events)-1].ID
		}
	})
}
