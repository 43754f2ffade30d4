package redisclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/test/redistest"
)

func TestCallsAreCountedByOperationAndOutcome(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis://127.0.0.1:1")
	addAgain := NewScript("add", "return {'ok'}", Writes) // another script of the same operation
	for _, err := range []error{
		nil, errOverLimit, errors.New("refused"), fmt.Errorf("%w: %w", ErrUnavailable, errors.New("dial")), errQueueFull, errStalled,
		fmt.Errorf("%w: lost", ErrOutcomeUnknown), fmt.Errorf("%w: code x", ErrReply),
	} {
		c.metrics.called(addScript.counted, time.Now(), err)
		c.metrics.called(addAgain.counted, time.Now(), err)
	}
	c.metrics.called(commandOperations["hget"], time.Now(), nil)
	for metric, want := range map[string]map[string]float64{
		"remit_redis_call_duration_seconds": {
			"add ok ": 2, "add refused ": 4, "add unavailable ": 2, "add overloaded ": 4, "add unknown ": 2, "add failed ": 2, "hget ok ": 1,
		},
		"remit_redis_failures_total": {"unavailable ": 2, "overloaded ": 4, "unknown ": 2, "failed ": 2},
	} {
		if got := redistest.Gathered(t, c, metric); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
	}
}

func TestCountingACallAllocatesNothing(t *testing.T) {
	c := openClient(t, Config{}, "redis://127.0.0.1:1")
	for _, err := range []error{nil, errOverLimit} {
		began := time.Now()
		c.metrics.called(addScript.counted, began, err) // the first finds the series
		made := testing.AllocsPerRun(100, func() { c.metrics.called(addScript.counted, began, err) })
		wantEqual(t, fmt.Sprint("allocations for ", err), made, 0)
	}
}

// Waiting calls, calls in flight and stalled pipelines are gauges over all servers.
func TestQueuesAreCollectedAsTheyStand(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis://127.0.0.1:1")
	other := redis.NewClient(&redis.Options{Addr: "127.0.0.1:2"})
	defer other.Close()
	for i, server := range []*redis.Client{c.redis.(*redis.Client), other} {
		l := c.pipeliners.of(server)
		for range i + 2 {
			l.inFlight.Add(2)
			l.queue.add(&pendingCall{})
		}
		l.queue.overflow.add(&pendingCall{})
		l.inFlight.Add(1)
		l.confirmed.stalled.Store(true)
		l.confirmed.pipelines = 1
	}
	for metric, want := range map[string]map[string]float64{
		"remit_redis_calls_waiting":     {"calls ": 7, "confirmed ": 0, "batches ": 0, "lists ": 0},
		"remit_redis_calls_in_flight":   {"calls ": 5, "confirmed ": 0, "batches ": 0, "lists ": 0},
		"remit_redis_pipelines_stalled": {"": 2},
	} {
		if got := redistest.Gathered(t, c, metric); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
	}
}

// A server that has left gets no more calls, so it is never found to answer again: it would be stalled for ever.
func TestAPipelinerWithoutCallsIsNotStalled(t *testing.T) {
	t.Parallel()
	c := openClient(t, Config{}, "redis://127.0.0.1:1")
	l := c.pipeliners.of(c.redis.(*redis.Client))
	l.stalled.Store(true)
	for _, test := range []struct {
		what   string
		change func()
		want   float64
	}{
		{"no call uses it", func() {}, 0},
		{"one tries", func() { l.pipelines++ }, 1},
		{"and is done", func() { l.pipelines-- }, 0},
		{"one waits", func() { l.queue.add(&pendingCall{}) }, 1},
	} {
		test.change()
		wantEqual(t, test.what, redistest.Gathered(t, c, "remit_redis_pipelines_stalled")[""], test.want)
	}
}

// A scrape sends nothing to Redis, even while no node of a cluster answers and none is known yet.
func TestAScrapeAsksNothingOfACluster(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	silent := redistest.Serve(t, func(conn net.Conn) {
		asked.Store(true)
		_ = conn.Close()
	})
	c := openClient(t, Config{}, "redis+cluster://"+silent)
	wantEqual(t, "series", len(redistest.Gathered(t, c, "remit_redis_pool_hits_total")), 1)
	if asked.Load() {
		t.Error("it was asked")
	}
}

// What the pool of a node has counted is not lost when the node leaves, and a node that has left is not kept.
func TestPoolCountersNeverFall(t *testing.T) {
	t.Parallel()
	addresses := redistest.StartCluster(t, 3)
	c := openClient(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","))
	cluster := c.redis.(*redis.ClusterClient)
	ping := func(_ context.Context, node *redis.Client) error { return node.Ping(t.Context()).Err() }
	for range 3 {
		must(0, cluster.ForEachMaster(t.Context(), ping))(t)
	}
	collected := func() (hits, misses, open float64) {
		sizes := redistest.Gathered(t, c, "remit_redis_pool_connections")
		return redistest.Gathered(t, c, "remit_redis_pool_hits_total")[""], redistest.Gathered(t, c, "remit_redis_pool_misses_total")[""],
			sizes["idle "] + sizes["used "]
	}
	hits, misses, open := collected()
	known := len(c.pools.counts)
	if hits < 6 || misses < 3 || open < 3 || known < 3 {
		t.Errorf("%v hits, %v misses, %v connections to %d servers", hits, misses, open, known)
	}
	left := must(cluster.MasterForKey(t.Context(), "key"))(t)
	_ = left.Close()
	if nowHits, nowMisses, nowOpen := collected(); nowHits < hits || nowMisses < misses || nowOpen >= open {
		t.Errorf("%v hits, %v misses and %v connections, then %v, %v and %v", hits, misses, open, nowHits, nowMisses, nowOpen)
	}
	if _, kept := c.pools.counts[left]; kept || len(c.pools.counts) != known-1 {
		t.Errorf("of %d servers %d are known", known-1, len(c.pools.counts))
	}
}

// go-redis counts in 32 bits, which a year of work is too much for.
func TestPoolSumsGoOnWhereGoRedisBeginsAgain(t *testing.T) {
	t.Parallel()
	var sum poolSums
	sum.add(poolCounts{}, poolCounts{hits: math.MaxUint32 - 1})
	sum.add(poolCounts{hits: math.MaxUint32 - 1}, poolCounts{hits: 3})
	wantEqual(t, "the sum", sum.hits, uint64(math.MaxUint32)+4)
}
