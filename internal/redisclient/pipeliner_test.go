package redisclient

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
	"remit/test/suite"
)

// pipelinesSeen counts the commands of each pipeline of scripts, and how many pipelines are in flight at once.
type pipelinesSeen struct {
	mu            sync.Mutex
	sizes         []int
	now, together int
	wait          atomic.Int64 // ms for a replica, at most, of the last pipeline that is confirmed
}

func (p *pipelinesSeen) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelinesSeen) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelinesSeen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() != "evalsha" {
			return next(ctx, commands)
		}
		p.mu.Lock()
		p.sizes = append(p.sizes, len(commands))
		p.now++
		p.together = max(p.together, p.now)
		if last := commands[len(commands)-1]; last.Name() == "wait" {
			p.wait.Store(last.Args()[2].(int64))
		}
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.now--
		}()
		return next(ctx, commands)
	}
}

// stalledPipeliner returns a pipeliner whose pipelines are all in flight for ever.
func stalledPipeliner() *pipeliner {
	l := newPipeliner(nil)
	l.pipelines = maxPipelines
	return l
}

func (l *pipeliner) shareSome(ctx context.Context) error {
	return l.share(&Command{bounds: bounds{ctx, time.Now().Add(time.Hour)}}, someCommand())
}

func someCommand() unretriedCmd { return unretriedCmd{redis.NewCmd(context.Background(), "ping")} }

func pendingFor(patience time.Duration) *pendingCall {
	return &pendingCall{cmd: someCommand(), deadline: time.Now().Add(patience), done: make(chan struct{}, 1)}
}

// exhaust leaves the queue room for one pipeline and nothing for bursts, until a full pipeline shows the pace.
func (l *pipeliner) exhaust() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.room, l.queue.tight = maxBatch, maxBatch
	l.queue.credit, l.queue.crowded = 0, time.Now().Add(time.Hour)
}

// Shedding a call costs about two thirds of serving one. If all were shed as fast as they come, callers that come again at once
// would leave no time for the others.
func TestAPipelineShedsOnlyAPartOfWhatItServes(t *testing.T) {
	t.Parallel()
	const came = 4 * maxBatch
	l := stalledPipeliner()
	l.exhaust()
	var group sync.WaitGroup
	var shed atomic.Int64
	for range came {
		group.Go(func() {
			if err := l.shareSome(context.Background()); err != nil {
				shed.Add(1)
				wantError(t, "a call that is shed", err, errQueueFull)
				wantError(t, "a write", classify(err, Writes), ErrOverloaded)
				wantError(t, "a write", classify(err, Writes), ErrUnavailable)
			}
		})
	}
	eventually(t, "all came", func() bool { return l.load().waiting == came })
	served := 0
	for batch := l.takeBatch(nil); len(batch) > 0; batch = l.takeBatch(batch[:0]) {
		served += len(batch)
		if left := came - served - l.load().waiting; left > served/servedPerShed {
			t.Errorf("%d are shed and %d served", left, served)
		}
		for _, p := range batch {
			p.cmd.SetVal([]any{"ok"})
			p.done <- struct{}{}
		}
	}
	group.Wait()
	if got := int(shed.Load()); got+served != came || got == 0 {
		t.Errorf("of %d, %d are shed and %d served", came, got, served)
	}
}

// A full pipeline shows the pace, which the room follows.
func TestThePaceBoundsTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			took time.Duration // a call of a pipeline
			room int
		}{
			"a fast Redis":      {4 * time.Microsecond, 12_500},
			"a usual Redis":     {60 * time.Microsecond, minRoom},
			"a slow Redis":      {time.Millisecond, minRoom},
			"a slower Redis":    {4 * time.Millisecond, 500},
			"a very slow Redis": {10 * time.Millisecond, maxBatch},
		} {
			l := newPipeliner(nil)
			for range 100 {
				l.taken = time.Now()
				time.Sleep(maxBatch * test.took)
				l.ended(maxBatch, nil)
			}
			wantEqual(t, name+": room", l.queue.room, test.room)
			l.taken = time.Now()
			time.Sleep(time.Second / 2)
			l.ended(maxBatch-1, nil)
			wantEqual(t, name+": room after a pipeline that was not full", l.queue.room, test.room)
		}
	})
}

// A fleet of many connections, each of which calls again once it is served, is no overload.
func TestAThousandCallersWhoWaitForTheirAnswersAreNeverShed(t *testing.T) {
	t.Parallel()
	for _, perCall := range []time.Duration{10 * time.Microsecond, 60 * time.Microsecond, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l := stalledPipeliner()
			l.queue.crowded = time.Now().Add(time.Hour) // no credit
			returning := 1000
			for range 1000 {
				for ; returning > 0; returning-- {
					suite.NoError(t, l.enqueue(pendingFor(CallTimeout)))
				}
				if l.queue.overflow.length > 0 {
					t.Fatalf("at %s a call, %d are beyond the room", perCall, l.queue.overflow.length)
				}
				batch := l.takeBatch(nil)
				time.Sleep(time.Duration(len(batch)) * perCall)
				l.ended(len(batch), nil)
				returning = len(batch)
			}
		})
	}
}

// 2,048 callers who call again once they are served or shed, as in an open loop at twice the capacity: a served caller has
// waited little, though many wait to be shed.
func TestServedCallsWaitLittleInAnOverload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const (
			perCall = 60 * time.Microsecond
			longest = 2 * maxBatch * perCall // behind a pipeline and in one
		)
		l := stalledPipeliner()
		l.queue.crowded = time.Now().Add(time.Hour) // no credit
		arrived := map[*pendingCall]time.Time{}
		began, served := time.Now(), 0
		for time.Since(began) < 10*time.Second {
			for p := range arrived {
				if len(p.done) > 0 { // shed
					delete(arrived, p)
				}
			}
			for len(arrived) < 2048 {
				p := pendingFor(CallTimeout)
				arrived[p] = time.Now()
				suite.NoError(t, l.enqueue(p))
			}
			batch := l.takeBatch(nil)
			time.Sleep(time.Duration(len(batch)) * perCall)
			l.ended(len(batch), nil)
			for _, p := range batch {
				if waited := time.Since(arrived[p]); waited > longest && time.Since(began) > time.Second {
					t.Fatalf("a call was served after %s", waited)
				}
				delete(arrived, p)
			}
			served += len(batch)
		}
		if capacity := int(10 * time.Second / perCall); served < capacity*99/100 {
			t.Errorf("%d of %d were served", served, capacity)
		}
	})
}

// A call that waits is not sent. One whose pipeline is being sent may be, though it is not written yet.
func TestACallWhoseCallerLeavesIsInDoubtOnlyInFlight(t *testing.T) {
	t.Parallel()
	for inFlight, want := range map[bool][2]error{false: {errCallerLeft, ErrUnavailable}, true: {context.Canceled, ErrOutcomeUnknown}} {
		l := stalledPipeliner()
		before := pendingFor(time.Hour)
		wantError(t, "entering", l.enqueue(before), nil)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- l.shareSome(ctx) }()
		eventually(t, "two wait", func() bool { return l.load().waiting == 2 })
		var batch []*pendingCall
		if inFlight {
			batch = l.takeBatch(nil)
		}
		cancel()
		err := <-left
		wantError(t, "who left", err, want[0])
		wantError(t, "a write", (&Command{}).classify(err, Writes), want[1])
		if !inFlight && (l.queue.waiting != 1 || l.queue.take() != before) {
			t.Errorf("%d wait", l.queue.waiting)
		}
		for _, p := range batch {
			p.done <- struct{}{} // no caller listens, and nothing hangs
		}
	}
}

// The pipeline of a caller that has left still writes its answer: a caller that read it then would be a data race.
func TestCallersWhoLeaveAtOnceReadNoAnswer(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis://"+miniredis.RunT(t).Addr())
	var callers sync.WaitGroup
	for i := range 4 * unsharedCalls {
		callers.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Duration(i*20)*time.Microsecond, cancel)
				if answer, err := c.Call(ctx, Flow{}, Reads, "get", "key"); answer != nil {
					t.Errorf("%v, %v", answer, err)
				}
			}
		})
	}
	callers.Wait()
}

func TestAPanicInASharedPipelineIsAnErrorOfItsCalls(t *testing.T) {
	t.Parallel()
	l := newPipeliner(nil) // of no server
	p := pendingFor(time.Hour)
	l.sendBatch([]*pendingCall{p})
	<-p.done
	if p.cmd.Err() == nil {
		t.Error("no error")
	}
}

func TestRepliesReadBeforeAPipelineBrokeAreReturned(t *testing.T) {
	t.Parallel()
	const sent, answered = 9, 4
	s := &breakingServer{answers: slices.Repeat([]string{done}, answered), ran: map[string]int{}}
	c := openClient(t, Config{}, "redis://"+redistest.Serve(t, s.serve))
	counts := map[bool]int{}
	for _, err := range callsAtOnce(t, c, unregistered("return {'ok'}"), sent, 1) {
		if counts[err == nil]++; err != nil {
			wantError(t, "a write", err, ErrOutcomeUnknown)
		}
	}
	if counts[true] != answered || counts[false] != sent-answered {
		t.Errorf("%d were answered, and %d not", counts[true], counts[false])
	}
}

func TestAPipelinerIsOfOneServerAndForgottenWithIt(t *testing.T) {
	t.Parallel()
	all := pipeliners{newConfirmer: func() *confirmer { return nil }}
	first, second := redis.NewClient(&redis.Options{Addr: "a:1"}), redis.NewClient(&redis.Options{Addr: "a:2"})
	again := redis.NewClient(&redis.Options{Addr: "a:1"}) // the node has left the cluster and come back
	for _, client := range []*redis.Client{first, second, again} {
		defer client.Close()
	}
	own := all.of(first)
	if all.of(first) != own || all.of(second) == own {
		t.Error("a server has not one pipeliner of its own")
	}
	if l := all.of(again); l == own || l.server != again {
		t.Error("the pipeliner is of a client that is closed")
	}
	wantEqual(t, "pipeliners of 2 addresses", len(all.byAddress), 2)
}

func TestAPipelineShowsWhetherRedisIsStalled(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for name, test := range map[string]struct {
		took           time.Duration
		err            error
		stalled, paced bool
	}{
		"answered":                    {time.Millisecond, nil, false, true},
		"answered, slowly":            {2 * stallTime, nil, false, true},
		"an error of Redis":           {time.Millisecond, serverError("OOM"), false, true},
		"refused at once":             {time.Millisecond, refused, false, false},
		"no answer":                   {2 * stallTime, io.EOF, true, false},
		"no connection free":          {2 * stallTime, redis.ErrPoolTimeout, false, false},
		"no connection may be made":   {2 * stallTime, redis.ErrPoolExhausted, false, false},
		"no answer, but not for long": {time.Millisecond, io.EOF, false, false},
	} {
		l := newPipeliner(nil)
		l.taken = time.Now().Add(-test.took)
		l.ended(maxBatch, test.err)
		if stalled, paced := l.stalled.Load(), l.pace > 0; stalled != test.stalled || paced != test.paced {
			t.Errorf("%s: stalled %t, a pace %t", name, stalled, paced)
		}
	}
}

func TestAShedCallReturnsInTime(t *testing.T) {
	t.Parallel()
	l := newPipeliner(nil)
	late, calm := pendingFor(minTimeLeft/2), pendingFor(time.Hour)
	l.queue.addBeyond(late)
	l.queue.addBeyond(calm)
	l.shedOverflow(0)
	if l.queue.overflow.length != 1 || l.queue.overflow.first != calm {
		t.Errorf("%d wait on", l.queue.overflow.length)
	}
	wantError(t, "the late one", late.cmd.Err(), errQueueFull)
}

func TestManyCallsAtOnceShareAFewPipelines(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, c *Client, _ *redis.Client) {
		const callers, each = 300, 20
		seen := &pipelinesSeen{}
		watched(c, func(string) redis.Hook { return seen })
		loadScripts(t, c)
		n := newCounter(c)
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for range each {
					wantError(t, "an add", second(n.add(context.Background(), Flow{})), nil)
				}
			})
		}
		group.Wait()
		wantSums(t, []counter{n}, callers*each)
		shared, largest := 0, 0
		for _, size := range seen.sizes {
			shared, largest = shared+size, max(largest, size)
		}
		if shared < callers || len(seen.sizes) > shared/2 {
			t.Errorf("%d calls shared %d pipelines", shared, len(seen.sizes))
		}
		if largest > maxBatch || seen.together > maxPipelines {
			t.Errorf("%d commands in one, %d at once: at most %d and %d", largest, seen.together, maxBatch, maxPipelines)
		}
		wantPipelinersEmpty(t, c)
	})
}

func wantPipelinersEmpty(t *testing.T, c *Client) {
	t.Helper()
	for _, l := range c.pipeliners.all() {
		eventually(t, "the pipeliner is empty", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.queue.waiting == 0 && l.pipelines == 0 && l.inFlight.Load() == 0
		})
	}
}

// The flood is shed; calls of another flow are not, nor is the call that ends the flood. A call that was shed never ran. A busy machine
// may leave Redis no time to answer: then calls of all flows come again, and what was in flight may have happened. No other test of the
// package runs beside it.
func TestAFloodOfOneFlowIsShedAndOthersAreServed(t *testing.T) {
	c := openClient(t, Config{}, redistest.StartRedis(t, redisproc.Config{}).URL())
	flooded, calm := newCounter(c), newCounter(c)
	flood, other, urgent := Flow{Owner: [16]byte{1}}, Flow{Owner: [16]byte{2}}, Flow{Owner: [16]byte{1}, Kind: 1}
	l := c.pipeliners.of(c.redis.(*redis.Client))
	l.exhaust()
	unanswered := func(err error) bool {
		return errors.Is(err, errTooLate) || errors.Is(err, errStalled) || tripError(err) == "timeout"
	}
	var group sync.WaitGroup
	var ended atomic.Bool
	var acknowledged, unknown, shed atomic.Int64
	defer group.Wait()
	defer ended.Store(true)
	for range 4 * minRoom {
		group.Go(func() {
			for !ended.Load() {
				switch _, err := flooded.add(context.Background(), flood); {
				case err == nil:
					acknowledged.Add(1)
				case errors.Is(err, errQueueFull):
					shed.Add(1)
				case unanswered(err):
					if errors.Is(err, ErrOutcomeUnknown) {
						unknown.Add(1)
					}
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	eventually(t, "some are shed", func() bool { return shed.Load() > 0 })
	late := 0 // behind the flood; a few are on a busy machine
	served := func(call func() error) {
		var err error
		eventually(t, "Redis answers", func() bool {
			if err = call(); errors.Is(err, errTooLate) {
				late++
			}
			return !unanswered(err) || late > 20
		})
		wantError(t, "a call beside the flood", err, nil)
	}
	for range 50 {
		served(func() error { return second(calm.add(t.Context(), other)) })
		served(func() error { return second(calm.read(t.Context())) })
	}
	served(func() error { return second(calm.add(t.Context(), urgent)) })
	ended.Store(true)
	group.Wait()
	stored := must(flooded.read(t.Context()))(t)
	if beyond := stored - acknowledged.Load(); beyond < 0 || beyond > unknown.Load() {
		t.Errorf("%d were acknowledged, %d have an unknown outcome, %d are counted, %d shed", acknowledged.Load(), unknown.Load(), stored, shed.Load())
	}
	wantPipelinersEmpty(t, c)
}

// While Redis is stalled no call waits for it except those few that try; calls that waited before return as soon as it is known. What was
// shed was never sent.
func TestNoCallWaitsForAStalledRedisUntilItAnswersAgain(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	c := openClient(t, Config{}, server.URL())
	n := newCounter(c)
	must(n.add(t.Context(), Flow{}))(t)
	var added, inDoubt, shed atomic.Int64
	added.Store(1)
	add := func() error {
		_, err := n.add(context.Background(), Flow{})
		switch {
		case err == nil:
			added.Add(1)
		case errors.Is(err, ErrOutcomeUnknown):
			inDoubt.Add(1)
		case errors.Is(err, ErrUnavailable): // it had waited too long, or its pipeline had no connection yet
			shed.Add(1)
		default:
			t.Errorf("from a stuck Redis: %v", err)
		}
		return err
	}
	crowd(t, c)
	resume := redistest.Suspend(t, server)
	var ended, trying sync.WaitGroup
	for range 4 * maxBatch {
		ended.Go(func() { _ = add() })
	}
	redistest.WaitAtMost(t, 2*CallTimeout, &ended)
	if added.Load() != 1 || inDoubt.Load() > unsharedCalls+maxBatch || shed.Load() == 0 {
		t.Errorf("%d calls were answered, %d sent without an answer, %d shed", added.Load()-1, inDoubt.Load(), shed.Load())
	}
	l := c.pipeliners.of(c.redis.(*redis.Client))
	if !l.stalled.Load() {
		t.Fatal("the pipeliner is not stalled")
	}
	trying.Go(func() { _ = add() }) // it may be answered after all
	eventually(t, "one tries", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.pipelines == 1
	})
	for range 1000 { // one after the other: a second for each would be a quarter of an hour
		if err := add(); !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrOutcomeUnknown) {
			t.Fatal(err)
		}
	}
	if calls := l.inFlight.Load() - unsharedCalls; calls > 1 || l.load().waiting > 0 { // crowd has added unsharedCalls
		t.Errorf("%d calls are in flight and %d wait", calls, l.load().waiting)
	}
	resume()
	trying.Wait()
	eventually(t, "it works again", func() bool { return add() == nil })
	if l.stalled.Load() {
		t.Error("it is still held to be stalled")
	}
	if sum := must(n.read(t.Context()))(t); sum < added.Load() || sum > added.Load()+inDoubt.Load() {
		t.Errorf("%d writes happened, of %d that were acknowledged and %d in doubt", sum, added.Load(), inDoubt.Load())
	}
}
