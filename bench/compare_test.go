package bench

import (
	"testing"
	"time"
)

const rounds = 5

// contender does about n operations in a round.
type contender struct {
	name string
	run  func(n int) (round, error)
	// alone: it does one operation after the other, so that latencies can be compared.
	alone bool
}

// round is how one went.
type round struct {
	rate float64 // operations per second
	p50  time.Duration
}

// timed is a contender that says how long each of its n operations took.
func timed(name string, run func(n int) ([]time.Duration, error)) contender {
	return contender{name: name, run: func(n int) (round, error) {
		began := time.Now()
		latencies, err := run(n)
		took := time.Since(began)
		if err != nil {
			return round{}, err
		}
		return round{rate: float64(n) / took.Seconds(), p50: median(latencies)}, nil
	}}
}

// compare lets the path and its floors do b.N operations each, in alternating rounds, and reports the path's own speed
// and how it compares with each floor: the median of its rounds over the median of theirs. Only the path is timed by b.
func compare(b *testing.B, path contender, floors ...contender) {
	b.Helper()
	compareRounds(b, max(b.N/rounds, 1), path, floors...)
}

// compareRounds is compare with so many operations in each round.
func compareRounds(b *testing.B, operations int, path contender, floors ...contender) {
	b.Helper()
	all := append([]contender{path}, floors...)
	results := make([][]round, len(all))
	b.ResetTimer()
	b.StopTimer()
	for range rounds {
		for i, contender := range all {
			if i == 0 {
				b.StartTimer()
			}
			result, err := contender.run(operations)
			b.StopTimer()
			if err != nil {
				b.Fatalf("%s: %v", contender.name, err)
			}
			results[i] = append(results[i], result)
		}
	}
	own := middle(results[0])
	for i, floor := range floors {
		its := middle(results[1+i])
		b.ReportMetric(own.rate/its.rate, "x-"+floor.name)
		if floor.alone {
			b.ReportMetric(float64(own.p50)/float64(its.p50), "p50-x-"+floor.name)
		}
	}
	b.ReportMetric(own.rate, "ops/s")
	b.ReportMetric(float64(own.p50)/1e3, "p50-us")
	b.ReportMetric(0, "ns/op") // of 256 at once it says less than ops/s
}

// middle is the medians of some rounds, each by itself.
func middle(of []round) round {
	rates, p50s := make([]float64, len(of)), make([]time.Duration, len(of))
	for i, r := range of {
		rates[i], p50s[i] = r.rate, r.p50
	}
	return round{rate: median(rates), p50: median(p50s)}
}
