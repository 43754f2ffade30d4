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

// crowd makes the store believe that so many calls are under way that all share pipelines.
func crowd(t *testing.T, s *Store) {
	t.Helper()
	var mu sync.Mutex
	occupy := func(_ context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		s.lanes.of(server).underWay.Add(plainCalls)
		return nil
	}
	var err error
	switch client := s.client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(t.Context(), occupy)
	case *redis.Client:
		err = occupy(t.Context(), client)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// aloneAndShared runs a test with calls that go by themselves, and with calls that share pipelines.
func aloneAndShared(t *testing.T, test func(t *testing.T, crowd func(*testing.T, *Store))) {
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		test(t, func(*testing.T, *Store) {})
	})
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		test(t, crowd)
	})
}

// pipelineSizes counts the commands of each pipeline of scripts, and how many pipelines are under way at once.
type pipelineSizes struct {
	mu            sync.Mutex
	sizes         []int
	now, together int
}

func (p *pipelineSizes) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelineSizes) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelineSizes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() != "evalsha" {
			return next(ctx, commands)
		}
		p.mu.Lock()
		p.sizes = append(p.sizes, len(commands))
		p.now++
		p.together = max(p.together, p.now)
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.now--
		}()
		return next(ctx, commands)
	}
}

func TestManyCallsAtOnceShareAFewPipelines(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const callers, each = 300, 20
		w := newTenant(t, s, NewSession{MaxActions: callers * each, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		seen := &pipelineSizes{}
		store := watched(t, s, func(string) redis.Hook { return seen })
		var group sync.WaitGroup
		var highest atomic.Int64
		for range callers {
			group.Go(func() {
				for range each {
					usage, err := store.Charge(context.Background(), token, w.session.ID, Charge{Count: 1, Value: 1})
					if err != nil {
						t.Error(err)
						return
					}
					for before := highest.Load(); usage.ActionCount > before && !highest.CompareAndSwap(before, usage.ActionCount); {
						before = highest.Load()
					}
				}
			})
		}
		group.Wait()
		if highest.Load() != callers*each {
			t.Errorf("%d charges were counted, want %d", highest.Load(), callers*each)
		}
		shared, largest := 0, 0
		for _, size := range seen.sizes {
			shared, largest = shared+size, max(largest, size)
		}
		if shared < callers || len(seen.sizes) > shared/2 {
			t.Errorf("%d calls shared %d pipelines", shared, len(seen.sizes))
		}
		if largest > laneCommands || seen.together > lanePipelines {
			t.Errorf("%d commands in one, %d at once: at most %d and %d", largest, seen.together, laneCommands, lanePipelines)
		}
		wantLanesEmpty(t, store)
	})
}

// wantLanesEmpty checks that nobody waits, and that nothing is left that would send.
func wantLanesEmpty(t *testing.T, s *Store) {
	t.Helper()
	s.lanes.byServer.Range(func(_, value any) bool {
		l := value.(*lane)
		eventually(t, "the lane is empty", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.waiting) == 0 && l.pipelines == 0 && l.underWay.Load() == 0
		})
		return true
	})
}

// TestAChargeWhoseReplyIsLost… has one call in the pipeline. Here are many: each that is in doubt was sent once.
func TestWhenASharedPipelinesReplyIsLostNoneOfItsCallsIsSentAgain(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *proxy) {
		const callers = 200
		w := newTenant(t, s, NewSession{MaxActions: 10 * callers, MaxValue: money.USD})
		token := byToken(w.exchange(t, s))
		loadScripts(t, s)
		crowd(t, s)
		p.loseReplies(chargeSession.sha, 2)
		var group sync.WaitGroup
		var acknowledged, unknown atomic.Int64
		for range callers {
			group.Go(func() {
				switch _, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1}); {
				case err == nil:
					acknowledged.Add(1)
				case errors.Is(err, ErrOutcomeUnknown):
					unknown.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		stored := must(s.Session(t.Context(), token, w.session.ID))(t).ActionCount
		if unknown.Load() == 0 || stored < acknowledged.Load() || stored > acknowledged.Load()+unknown.Load() {
			t.Errorf("%d acknowledged, %d in doubt, %d charged", acknowledged.Load(), unknown.Load(), stored)
		}
	})
}

// howMany returns how many wait.
func (l *lane) howMany() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// stuckLane returns a lane whose pipelines are all under way, and will be for ever.
func stuckLane() *lane { return &lane{pipelines: lanePipelines} }

func someCommand() onceCmd { return onceCmd{redis.NewCmd(context.Background(), "ping")} }

func TestWhoFindsTheLaneFullIsToldAtOnce(t *testing.T) {
	t.Parallel()
	l := stuckLane()
	for range laneWaiting {
		if !l.enter(&passenger{}) {
			t.Fatal("it was full before")
		}
	}
	err := l.share(t.Context(), time.Now().Add(time.Hour), someCommand())
	wantError(t, "the next", err, errLaneFull)
	wantError(t, "a write", classify(err, writes), ErrUnavailable)
}

func TestWhoLeavesTheLaneIsNotSent(t *testing.T) {
	t.Parallel()
	l := stuckLane()
	before := &passenger{}
	l.enter(before)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- l.share(ctx, time.Now().Add(time.Hour), someCommand()) }()
	eventually(t, "two wait", func() bool { return l.howMany() == 2 })
	cancel()
	err := <-left
	wantError(t, "who left", err, errLeftLane)
	wantError(t, "a write", classify(err, writes), ErrUnavailable)
	if len(l.waiting) != 1 || l.waiting[0] != before {
		t.Errorf("%d wait", len(l.waiting))
	}
}

func TestWhoLeavesWhenTheCommandIsUnderWayIsInDoubt(t *testing.T) {
	t.Parallel()
	l := stuckLane()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- l.share(ctx, time.Now().Add(time.Hour), someCommand()) }()
	eventually(t, "it waits", func() bool { return l.howMany() == 1 })
	aboard := l.board(nil)
	cancel()
	err := <-left
	wantError(t, "who left", err, context.Canceled)
	wantError(t, "a write", classify(err, writes), ErrOutcomeUnknown)
	aboard[0].done <- struct{}{} // nobody listens, and nothing hangs
}

// The first to wait has the earliest deadline. So it is enough to look at deadlines when a pipeline sets out.
func TestWhoHasWaitedTooLongIsNotSent(t *testing.T) {
	t.Parallel()
	client := plainClient(t, startRedis(t, redisproc.Config{}).URL())
	l := &lane{server: client}
	now := time.Now()
	increment := func() onceCmd { return onceCmd{redis.NewCmd(context.Background(), "incr", "calls")} }
	late, inTime := increment(), increment()
	aboard := []*passenger{
		{cmd: late, deadline: now.Add(-time.Second), done: make(chan struct{}, 1)},
		{cmd: inTime, deadline: now.Add(time.Minute), done: make(chan struct{}, 1)},
	}
	l.sendOne(aboard)
	for _, p := range aboard {
		<-p.done
	}
	wantError(t, "the late one", late.Err(), errLaneLate)
	wantError(t, "a write", classify(late.Err(), writes), ErrUnavailable)
	if calls, err := inTime.Int(); calls != 1 || err != nil {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestASharedCallEndsByItsDeadlineWhenRedisIsStuck(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 10})
	token := byToken(w.exchange(t, s))
	crowd(t, s)
	must(plainClient(t, server.URL()).Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Result())(t)
	var group sync.WaitGroup
	for range 3 * laneCommands { // more than are under way at once
		group.Go(func() {
			_, err := s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1})
			if !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v", err)
			}
		})
	}
	group.Wait() // it hangs unless every call ends
}

func TestAPanicInASharedPipelineIsAnErrorOfItsCalls(t *testing.T) {
	t.Parallel()
	l := &lane{} // of no server
	p := &passenger{cmd: someCommand(), deadline: time.Now().Add(time.Hour), done: make(chan struct{}, 1)}
	l.sendOne([]*passenger{p})
	<-p.done
	if p.cmd.Err() == nil {
		t.Error("no error")
	}
}
