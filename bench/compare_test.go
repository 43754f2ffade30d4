package bench

import (
	"testing"
	"time"
)

const rounds = 5

// contender makes about n operations per round.
type contender struct {
	name string
	run  func(n int) (round, error)
	// alone: it makes one operation after the other, so that latencies can be compared.
	alone bool
}

// round is the result of one round.
type round struct {
	rate float64 // operations per second
	p50  time.Duration
}

// timed returns a contender from a function that returns the latency of each operation.
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

// compare runs the path and its floors with b.N operations each, in alternating rounds. It reports the speed of the path, and
// its ratio to each floor: median of its rounds / median of theirs. B times only the path.
func compare(b *testing.B, path contender, floors ...contender) {
	b.Helper()
	compareRounds(b, max(b.N/rounds, 1), path, floors...)
}

// compareRounds is compare with n operations per round.
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
	own := medians(results[0])
	for i, floor := range floors {
		its := medians(results[1+i])
		b.ReportMetric(own.rate/its.rate, "x-"+floor.name)
		if floor.alone {
			b.ReportMetric(float64(own.p50)/float64(its.p50), "p50-x-"+floor.name)
		}
	}
	b.ReportMetric(own.rate, "ops/s")
	b.ReportMetric(float64(own.p50)/1e3, "p50-us")
	b.ReportMetric(0, "ns/op") // with 256 concurrent calls it says less than ops/s
}

// medians returns the median rate and the median latency of the rounds.
func medians(of []round) round {
	rates, p50s := make([]float64, len(of)), make([]time.Duration, len(of))
	for i, r := range of {
		rates[i], p50s[i] = r.rate, r.p50
	}
	return round{rate: median(rates), p50: median(p50s)}
}
