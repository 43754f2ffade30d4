package redisstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
		if strings.HasSuffix(file, "_test.go") {
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
		s.lanes.byAddress = map[string]*lane{address: l}
		want := map[string]float64{"calls ": float64(i + 3), "confirmed ": 0, "batches ": 0, "lists ": 0}
		for queue, waiting := range gathered(t, s, "remit_redis_calls_waiting") {
			if waiting != want[queue] {
				t.Errorf("%s%v wait, want %v", queue, waiting, want[queue])
			}
		}
		if got := gathered(t, s, "remit_redis_calls_under_way")["calls "]; got != float64(i+2) {
			t.Errorf("%v are under way, want %d", got, i+2)
		}
		if got := gathered(t, s, "remit_redis_lanes_stuck")[""]; got != 1 {
			t.Errorf("%v are stuck", got)
		}
	}
}
