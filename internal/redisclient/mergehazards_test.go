package redisclient

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

func TestAFullRedisRefusesEachCallOfACommand(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, c *Client, node *redis.Client) {
		counters := countersTogether(c, 5)
		loadScripts(t, c)
		must(node.ConfigSet(t.Context(), "maxmemory", "1").Result())(t)
		for _, err := range addsAtOnce(t, counters) {
			if !errors.Is(err, ErrUnavailable) || !RefusedWrite(err) {
				t.Errorf("%v, want %v by OOM", err, ErrUnavailable)
			}
		}
		must(node.ConfigSet(t.Context(), "maxmemory", "0").Result())(t)
		wantSums(t, counters, 0)
	})
}

func TestACallWithHardlyAnyTimeLeftIsNotSent(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, c *Client) {
		counters := countersTogether(c, 4)
		calls, errs := make([]func(context.Context), len(counters)), make([]error, len(counters))
		for i, n := range counters {
			calls[i] = func(ctx context.Context) {
				if i == 1 {
					hurried, cancel := context.WithTimeout(ctx, minTimeLeft)
					defer cancel()
					ctx = deadlineOnly{hurried}
				}
				_, errs[i] = n.add(ctx, Flow{})
			}
		}
		atOnce(t, c, counters[0].key, calls...)
		for i, err := range errs {
			if i == 1 {
				wantError(t, "the late one", err, errTooLate)
				wantError(t, "a write", err, ErrUnavailable)
				continue
			}
			wantError(t, "another", err, nil)
		}
		wantSums(t, counters[1:2], 0)
	})
}

// deadlineOnly is a context that does not end by itself, as that of a request whose caller waits for the answer.
type deadlineOnly struct{ context.Context }

func (deadlineOnly) Done() <-chan struct{} { return nil }

func TestOnAClusterOnlyCallsWithOneHashTagShareACommand(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis+cluster://"+redistest.StartCluster(t, 1)[0])
	seen := &pipelinesSeen{}
	watched(c, func(string) redis.Hook { return seen })
	loadScripts(t, c)
	together, apart := countersTogether(c, 5), []counter{newCounter(c), newCounter(c), newCounter(c)}
	addAll(t, append(together, apart...))
	if len(seen.sizes) != 1 || seen.sizes[0] != 1+len(apart) {
		t.Errorf("the pipelines have %v commands, want one of %d", seen.sizes, 1+len(apart))
	}
}

// A node of a cluster that is called as if it were a Redis by itself refuses keys of several slots in one command.
func TestCallsThatAClusterRefusesTogetherGoByThemselves(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis://"+redistest.StartCluster(t, 1)[0])
	counters := []counter{newCounter(c), newCounter(c), newCounter(c)}
	for times := int64(1); times <= 2; times++ {
		addAll(t, counters)
		wantSums(t, counters, times)
	}
	if !c.pipeliners.of(c.redis.(*redis.Client)).byTag.Load() {
		t.Error("it goes on merging calls of several slots")
	}
}

// While a slot moves, some of its keys are on one server and some on the other. A command over both cannot run, although each
// of its calls by itself can.
func TestMergedCallsFollowASlotThatMoves(t *testing.T) {
	t.Parallel()
	addresses := redistest.StartCluster(t, 2)
	c := openClient(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","))
	counters := countersTogether(c, 4)
	addAll(t, counters)
	move := redistest.NewMove(t, counters[0].key, addresses)
	move.Begin(t)
	addAll(t, counters)
	redistest.MoveKey(t, move.Source, move.To, counters[1].key)
	addAll(t, counters)
	if move.Said(t, "TRYAGAIN") == 0 || move.Said(t, "ASK") == 0 {
		t.Error("no command met keys on both servers")
	}
	move.Rest(t)
	addAll(t, counters)
	move.End(t)
	addAll(t, counters)
	wantSums(t, counters, 5)
}

// A script that an administrator kills has written nothing. It ends as a whole, and no call of it goes on.
func TestAMergedScriptThatIsKilledEndsForAllItsCalls(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{Args: []string{"--busy-reply-threshold", "20"}})
	c, admin := openClient(t, Config{}, server.URL()), redistest.PlainClient(t, server.URL())
	endless := unregistered("while true do redis.call('GET', KEYS[1]) end return {'ok'}")
	endless.MergeAs(mergedSource("while true do redis.call('GET', KEYS[1]) end", 1, 0), 1, 0)
	must(admin.ScriptLoad(t.Context(), string(endless.merged.source)).Result())(t)
	n := newCounter(c)
	var failed atomic.Int64
	call := func(ctx context.Context) {
		if _, err := c.Run(ctx, Flow{}, endless, []string{n.key}); errors.Is(err, ErrOutcomeUnknown) && strings.Contains(err.Error(), "killed") {
			failed.Add(1)
		} else {
			t.Error(err)
		}
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for admin.ScriptKill(context.Background()).Err() != nil && failed.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
	}()
	atOnce(t, c, n.key, call, call, call)
	<-killed
	wantEqual(t, "failed calls", failed.Load(), 3)
	must(n.add(t.Context(), Flow{}))(t)
}

func TestAnAnswerThatIsNotOneForEachCallIsAnError(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, redistest.StartRedis(t, redisproc.Config{}).URL())
	wrong := unregistered("return {'ok'}")
	for _, source := range []string{"return {}", "return {{'ok'}}", "return {{'ok'}, {'ok'}, {'ok'}}", "return 1"} {
		wrong.MergeAs(source, 1, 0)
		n := newCounter(c)
		call := func(ctx context.Context) {
			_, err := c.Run(ctx, Flow{}, wrong, []string{n.key})
			wantError(t, source, err, ErrReply)
			wantError(t, source, err, ErrOutcomeUnknown)
		}
		atOnce(t, c, n.key, call, call)
	}
}
