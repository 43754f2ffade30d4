package redisclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"remit/test/redistest"
	"remit/test/suite"
)

// atOnce makes calls that all share one pipeline to the server of the key, in this order, and returns when all have ended.
func atOnce(t *testing.T, c *Client, key string, calls ...func(context.Context)) {
	t.Helper()
	server := must(c.serverOf(t.Context(), key))(t)
	l := c.pipeliners.of(server)
	l.inFlight.Add(unsharedCalls)
	defer l.inFlight.Add(-unsharedCalls)
	eventually(t, "the last pipeline ends", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.pipelines > 0 {
			return false
		}
		l.pipelines = maxPipelines // as many as may be in flight: every call waits
		return true
	})
	var group sync.WaitGroup
	for i, call := range calls {
		group.Go(func() { call(context.Background()) })
		eventually(t, "it waits", func() bool { // or the client has learned meanwhile that another server has the key's slot
			return l.load().waiting == i+1 || must(c.serverOf(t.Context(), key))(t) != server
		})
	}
	l.sendAll()
	redistest.WaitAtMost(t, 30*time.Second, &group)
}

// addsAtOnce adds 1 to each counter at once, and returns their errors.
func addsAtOnce(t *testing.T, counters []counter) []error {
	t.Helper()
	errs, calls := make([]error, len(counters)), make([]func(context.Context), len(counters))
	for i, n := range counters {
		calls[i] = func(ctx context.Context) { _, errs[i] = n.add(ctx, Flow{}) }
	}
	atOnce(t, counters[0].c, counters[0].key, calls...)
	return errs
}

func addAll(t *testing.T, counters []counter) {
	t.Helper()
	suite.NoError(t, errors.Join(addsAtOnce(t, counters)...))
}

// countersTogether returns counters that may share a command, also on a cluster.
func countersTogether(c *Client, count int) []counter {
	tag, counters := prefixes.Add(1), make([]counter, count)
	for i := range counters {
		counters[i] = counter{c, fmt.Sprintf("%s{%d}:count:%d", c.config.Prefix, tag, i)}
	}
	return counters
}

func wantSums(t *testing.T, counters []counter, want int64) {
	t.Helper()
	for i, n := range counters {
		wantEqual(t, fmt.Sprint("the sum of ", i), must(n.read(t.Context()))(t), want)
	}
}

// onEachKind runs the test on miniredis, on a real Redis and on a cluster.
func onEachKind(t *testing.T, test func(t *testing.T, c *Client)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, openClient(t, Config{}, "redis://"+miniredis.RunT(t).Addr()))
	})
	onRealRedis(t, Config{}, func(t *testing.T, c *Client, _ *redis.Client) { test(t, c) })
}

func TestCallsOfOneScriptThatShareAPipelineGoAsOneCommand(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, c *Client) {
		seen := &pipelinesSeen{}
		watched(c, func(string) redis.Hook { return seen })
		loadScripts(t, c)
		counters := countersTogether(c, 2*maxMerged+1)
		addAll(t, counters)
		if len(seen.sizes) != 1 || seen.sizes[0] != 3 { // two of many calls, and one by itself
			t.Errorf("%d calls went as %v commands", len(counters), seen.sizes)
		}
		wantSums(t, counters, 1)
		wantEqual(t, "merged commands", redistest.Gathered(t, c, "remit_redis_merged_calls")[""], 2)
		wantEqual(t, "calls", redistest.Gathered(t, c, "remit_redis_call_duration_seconds")["add ok "], float64(len(counters)))
	})
}

func TestCallsOfSeveralScriptsShareCommandsWithTheirOwn(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, c *Client) {
		loadScripts(t, c)
		n := newCounter(c)
		key, nothing := n.key, func(ctx context.Context) {
			_, err := c.Run(ctx, Flow{}, noScript, []string{n.key})
			wantError(t, "a script that is not merged", err, nil)
		}
		var added, read atomic.Int64
		add := func(ctx context.Context) { added.Add(must(n.add(ctx, Flow{}))(t)) }
		look := func(ctx context.Context) { read.Add(must(n.read(ctx))(t)) }
		atOnce(t, c, key, add, look, nothing, add, look, add)
		if added.Load() != 1+2+3 || read.Load()%2 != 0 || read.Load() > 6 { // the reads are one script: they see the same
			t.Errorf("the sums add up to %d, the reads to %d", added.Load(), read.Load())
		}
	})
}

// A key that is no string makes the script fail.
func TestACallThatIsRefusedOrFailsLeavesTheOthersOfItsCommandAlone(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, c *Client) {
		counters := countersTogether(c, 2)
		sound, corrupt := counters[0], counters[1]
		must(c.redis.LPush(t.Context(), corrupt.key, "x").Result())(t)
		var sums, refused, failed atomic.Int64
		addTo := func(n counter) func(context.Context) {
			return func(ctx context.Context) {
				switch sum, err := sumIn(c.Run(ctx, Flow{}, addScript, []string{n.key}, 1, 3)); {
				case err == nil:
					sums.Add(sum)
				case errors.Is(err, errOverLimit):
					refused.Add(1)
				case n == corrupt && errors.Is(err, ErrOutcomeUnknown) && strings.Contains(err.Error(), "WRONGTYPE"):
					failed.Add(1)
				default:
					t.Error(err)
				}
			}
		}
		add := addTo(sound)
		atOnce(t, c, sound.key, add, add, addTo(corrupt), add, add, add)
		if sums.Load() != 1+2+3 || refused.Load() != 2 || failed.Load() != 1 {
			t.Errorf("the sums add up to %d, %d are refused, %d failed", sums.Load(), refused.Load(), failed.Load())
		}
	})
}

// The words of a merged command are those of its calls, and what gathers them is used again.
func TestMergingAllocatesLessThanACommandForEachCall(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	calls := make([]*Command, maxMerged)
	for i := range calls {
		calls[i] = NewCommand(Flow{}, 1)
		calls[i].Keys(fmt.Sprint("key", i))
		calls[i].Arguments(1, 0)
		calls[i].of(context.Background(), addScript, false)
	}
	own := unretriedCmd{redis.NewCmd(context.Background(), calls[0].words...)}
	pipeline, merges := client.Pipeline(), newMerger()
	queue := func() {
		for _, call := range calls {
			merges.add(pipeline, own, call, false)
		}
		merges.end(pipeline, nil)
		if len(merges.all) != 1 || len(merges.all[0].words) != firstKeyWord+3*maxMerged {
			t.Fatal("they are not merged")
		}
		merges.reset()
		pipeline.Discard()
	}
	if made := testing.AllocsPerRun(100, queue); made > 4 { // the command, its place in the pipeline, and an interface
		t.Errorf("%v allocations for %d calls", made, maxMerged)
	}
}
