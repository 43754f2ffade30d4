package bench

import (
	"testing"
	"time"
)

const rounds = 5

// contender does n operations and returns their latencies.
type contender struct {
	name string
	run  func(n int) ([]time.Duration, error)
}

// compare lets the path and its floors do b.N operations each, in alternating rounds, and reports the path's own speed
// and how it compares with each floor: the median of its rounds over the median of theirs. Only the path is timed by b.
func compare(b *testing.B, path contender, floors ...contender) {
	b.Helper()
	n := max(b.N/rounds, 1)
	rates := make([][]float64, 1+len(floors))
	var latencies []time.Duration
	b.ResetTimer()
	b.StopTimer()
	for range rounds {
		for i, contender := range append([]contender{path}, floors...) {
			if i == 0 {
				b.StartTimer()
			}
			began := time.Now()
			own, err := contender.run(n)
			took := time.Since(began)
			b.StopTimer()
			if err != nil {
				b.Fatalf("%s: %v", contender.name, err)
			}
			rates[i] = append(rates[i], float64(n)/took.Seconds())
			if i == 0 {
				latencies = append(latencies, own...)
			}
		}
	}
	rate := median(rates[0])
	for i, floor := range floors {
		b.ReportMetric(rate/median(rates[1+i]), "x-"+floor.name)
	}
	b.ReportMetric(rate, "ops/s")
	b.ReportMetric(float64(median(latencies))/1e3, "p50-us")
	b.ReportMetric(0, "ns/op") // of 256 at once it says less than ops/s
}
