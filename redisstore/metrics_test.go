package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// gathered returns the values of a metric, by its labels' values; of a histogram how many it has seen.
func gathered(t *testing.T, s *Store, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	values := map[string]float64{}
	for _, family := range must(registry.Gather())(t) {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := ""
			for _, label := range series.GetLabel() {
				labels += label.GetValue() + " "
			}
			values[labels] = series.GetGauge().GetValue() + series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
		}
	}
	return values
}

func TestCallsAreCountedByOperationAndOutcome(t *testing.T) {
	t.Parallel()
	s := openStore(t, Config{}, "redis://127.0.0.1:1", nil)
	for _, err := range []error{
		nil, ErrInvalidToken, &LimitError{}, fmt.Errorf("%w: %w", ErrUnavailable, errors.New("dial")), errLaneFull, errLaneStuck,
		fmt.Errorf("%w: lost", ErrOutcomeUnknown), fmt.Errorf("%w: code x", errReply),
	} {
		s.counts.called(chargeSession.counted, time.Now(), err)
		s.counts.called(chargeSession.keyed.counted, time.Now(), err)
	}
	s.counts.called(operationOf("hget"), time.Now(), nil)
	for labels, want := range map[string]float64{
		"charge_session ok ": 2, "charge_session refused ": 4, "charge_session unavailable ": 2, "charge_session overloaded ": 4,
		"charge_session unknown ": 2, "charge_session failed ": 2, "hget ok ": 1,
	} {
		if got := gathered(t, s, "remit_redis_call_duration_seconds")[labels]; got != want {
			t.Errorf("%s: %v, want %v", labels, got, want)
		}
	}
	for labels, want := range map[string]float64{"unavailable ": 2, "overloaded ": 4, "unknown ": 2, "failed ": 2} {
		if got := gathered(t, s, "remit_redis_failures_total")[labels]; got != want {
			t.Errorf("failures %s: %v, want %v", labels, got, want)
		}
	}
}

func TestCountingACallAllocatesNothing(t *testing.T) {
	s := openStore(t, Config{}, "redis://127.0.0.1:1", nil)
	for _, err := range []error{nil, ErrInvalidToken} {
		began := time.Now()
		s.counts.called(chargeSession.counted, began, err) // the first finds the series
		if made := testing.AllocsPerRun(100, func() { s.counts.called(chargeSession.counted, began, err) }); made != 0 {
			t.Errorf("%v: %v allocations", err, made)
		}
	}
}

// A command that operationOf does not know would be counted as another.
func TestEveryCommandOfRedisIsCountedByItsName(t *testing.T) {
	t.Parallel()
	called := regexp.MustCompile(`\bs\.call\([^"]*"(\w+)"`)
	var verbs []string
	for _, file := range must(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(file, "_test.go") { // which call others, to see that they fail
			continue
		}
		for _, call := range called.FindAllStringSubmatch(string(must(os.ReadFile(file))(t)), -1) {
			verbs = append(verbs, call[1])
		}
	}
	if len(verbs) < 4 {
		t.Errorf("%v: the test sees them no more", verbs)
	}
	for _, verb := range verbs {
		if op := operationOf(verb); operations[op] != verb {
			t.Errorf("%s is counted as %s", verb, operations[op])
		}
	}
	if all := slices.Sorted(slices.Values(operations)); len(slices.Compact(all)) != len(operations) {
		t.Errorf("an operation has two places: %v", operations)
	}
}

// What waits, what is under way and what is stuck is told as it stands, of all servers together.
func TestQueuesAreToldAsTheyStand(t *testing.T) {
	t.Parallel()
	s := openStore(t, Config{}, "redis://127.0.0.1:1", nil)
	for i, address := range []string{"a", "b"} {
		l := newLane(nil)
		l.confirmed = newLane(nil)
		for range i + 2 {
			l.underWay.Add(2)
			l.row.add(&passenger{})
		}
		l.row.excess.add(&passenger{})
		l.underWay.Add(1)
		l.confirmed.stuck.Store(true)
		l.confirmed.pipelines = 1
		s.lanes.byAddress = map[string]*lane{address: l}
		want := map[string]float64{"calls ": float64(i + 3), "confirmed ": 0, "batches ": 0, "lists ": 0}
		for queue, waiting := range gathered(t, s, "remit_redis_calls_waiting") {
			if waiting != want[queue] {
				t.Errorf("%s%v wait, want %v", queue, waiting, want[queue])
			}
		}
		if got := gathered(t, s, "remit_redis_calls_in_flight")["calls "]; got != float64(i+2) {
			t.Errorf("%v are under way, want %d", got, i+2)
		}
		if got := gathered(t, s, "remit_redis_pipelines_stalled")[""]; got != 1 {
			t.Errorf("%v are stuck", got)
		}
	}
}

// A server that is not asked any more, for it has left, is never found to answer again: it would be stuck for ever.
func TestALaneThatNobodyUsesIsNotStuck(t *testing.T) {
	t.Parallel()
	s := openStore(t, Config{}, "redis://127.0.0.1:1", nil)
	l := newLane(nil)
	l.confirmed = newLane(nil)
	s.lanes.byAddress = map[string]*lane{"a": l}
	l.stuck.Store(true)
	for _, test := range []struct {
		what   string
		change func()
		want   float64
	}{
		{"nobody uses it", func() {}, 0},
		{"one tries", func() { l.pipelines++ }, 1},
		{"and is done", func() { l.pipelines-- }, 0},
		{"one waits", func() { l.row.add(&passenger{}) }, 1},
	} {
		test.change()
		if got := gathered(t, s, "remit_redis_pipelines_stalled")[""]; got != test.want {
			t.Errorf("%s: %v are stuck, want %v", test.what, got, test.want)
		}
	}
}

// A scrape asks nothing of Redis, though no node of a cluster answers and none is known yet.
func TestAScrapeAsksNothingOfACluster(t *testing.T) {
	t.Parallel()
	silent := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	asked := make(chan struct{}, 1)
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	s := openStore(t, Config{}, "redis+cluster://"+silent.Addr().String(), nil)
	if told := gathered(t, s, "remit_redis_pool_hits_total"); len(told) != 1 {
		t.Errorf("%v", told)
	}
	select {
	case <-asked:
		t.Error("it was asked")
	default:
	}
}

// What the pool of a node has counted is not lost when the node leaves, and a node that has left is not kept.
func TestPoolCountersNeverFall(t *testing.T) {
	t.Parallel()
	addresses := startCluster(t, 3)
	s := openStore(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","), nil)
	cluster := s.client.Redis().(*redis.ClusterClient)
	ping := func(_ context.Context, node *redis.Client) error { return node.Ping(t.Context()).Err() }
	for range 3 {
		if err := cluster.ForEachMaster(t.Context(), ping); err != nil {
			t.Fatal(err)
		}
	}
	connections := func() float64 {
		sizes := gathered(t, s, "remit_redis_pool_connections")
		return sizes["idle "] + sizes["used "]
	}
	hits, misses, open, known := gathered(t, s, "remit_redis_pool_hits_total")[""], gathered(t, s, "remit_redis_pool_misses_total")[""], connections(), len(s.pools.seen)
	if hits < 6 || misses < 3 || open < 3 || known < 3 {
		t.Errorf("%v hits, %v misses, %v connections to %d servers", hits, misses, open, known)
	}
	left := must(cluster.MasterForKey(t.Context(), "key"))(t)
	_ = left.Close()
	if now := gathered(t, s, "remit_redis_pool_hits_total")[""]; now < hits {
		t.Errorf("%v hits, then %v", hits, now)
	}
	if now := gathered(t, s, "remit_redis_pool_misses_total")[""]; now < misses {
		t.Errorf("%v misses, then %v", misses, now)
	}
	if now := connections(); now >= open {
		t.Errorf("%v connections, then %v", open, now)
	}
	if _, kept := s.pools.seen[left]; kept || len(s.pools.seen) != known-1 {
		t.Errorf("of %d servers %d are known", known-1, len(s.pools.seen))
	}
}

// go-redis counts in 32 bits, which a year of work is too much for.
func TestPoolSumsGoOnWhereGoRedisBeginsAgain(t *testing.T) {
	t.Parallel()
	var sum poolSums
	sum.add(poolCounts{}, poolCounts{hits: math.MaxUint32 - 1})
	sum.add(poolCounts{hits: math.MaxUint32 - 1}, poolCounts{hits: 3})
	if want := uint64(math.MaxUint32) + 4; sum.hits != want {
		t.Errorf("%d, want %d", sum.hits, want)
	}
}
