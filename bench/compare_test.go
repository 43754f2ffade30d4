package bench

import (
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const rounds = 5

// contender makes about n operations per round.
type contender struct {
	name string
	run  func(n int) (round, error)
	// prepare makes what a round of n operations needs, before its time and its processor time begin; nil for nothing.
	prepare func(n int)
	// alone: it makes one operation after the other, so that latencies can be compared.
	alone bool
	// server and redis are the processes that a round uses beside this one, 0 for none.
	server, redis int
}

// beside returns a contender that uses these processes beside this one.
func (c contender) beside(server, redis int) contender {
	c.server, c.redis = server, redis
	return c
}

// round is the result of one round.
type round struct {
	operations int
	rate       float64       // operations per second
	p50, p99   time.Duration // p99 is 0 where latencies are not known one by one
	used       usage
}

// usage is processor time, user and system, in microseconds: of the load generator, which is this process, and of the processes
// that it calls.
type usage struct{ client, server, redis float64 }

// per divides what was used since before by a number of operations.
func (u usage) per(operations int, before usage) usage {
	n := float64(operations)
	return usage{(u.client - before.client) / n, (u.server - before.server) / n, (u.redis - before.redis) / n}
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
		done := len(latencies)
		return round{operations: done, rate: float64(done) / took.Seconds(), p50: median(latencies), p99: quantile(0.99, latencies)}, nil
	}}
}

// measure prepares and makes a round of n operations, and reads the processor time that each process uses for one of them.
func (c contender) measure(n int) (round, error) {
	if c.prepare != nil {
		c.prepare(n)
	}
	before, err := c.usedSoFar()
	if err != nil {
		return round{}, err
	}
	result, err := c.run(n)
	if err != nil {
		return round{}, err
	}
	after, err := c.usedSoFar()
	result.used = after.per(result.operations, before)
	return result, err
}

func (c contender) usedSoFar() (usage, error) {
	var used usage
	for _, of := range []struct {
		pid  int
		time *float64
	}{{os.Getpid(), &used.client}, {c.server, &used.server}, {c.redis, &used.redis}} {
		if of.pid == 0 {
			continue
		}
		soFar, err := processorTime(of.pid)
		if err != nil {
			return usage{}, err
		}
		*of.time = float64(soFar) / 1e3
	}
	return used, nil
}

// compare runs the path and its floors with b.N operations each, in alternating rounds. It reports the speed of the path, and
// its ratio to each floor: median of its rounds / median of theirs. B times only the path.
func compare(b *testing.B, path contender, floors ...contender) {
	b.Helper()
	compareRounds(b, max(b.N/rounds, 1), path, floors...)
}

// compareRounds is compare with n operations per round. It returns the medians of the path and of each floor.
func compareRounds(b *testing.B, operations int, path contender, floors ...contender) (own round, its []round) {
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
			result, err := contender.measure(operations)
			b.StopTimer()
			if err != nil {
				b.Fatalf("%s: %v", contender.name, err)
			}
			results[i] = append(results[i], result)
		}
	}
	own = medians(results[0])
	for i, floor := range floors {
		its = append(its, medians(results[1+i]))
		b.ReportMetric(own.rate/its[i].rate, "x-"+floor.name)
		if floor.alone {
			b.ReportMetric(float64(own.p50)/float64(its[i].p50), "p50-x-"+floor.name)
		}
		if its[i].used.server > 0 {
			b.ReportMetric(own.used.server/its[i].used.server, "service-x-"+floor.name)
		}
		if its[i].used.redis > 0 {
			b.ReportMetric(own.used.redis/its[i].used.redis, "redis-x-"+floor.name)
		}
		reportUsage(b, its[i].used, floor.name+"-")
	}
	b.ReportMetric(own.rate, "ops/s")
	b.ReportMetric(float64(own.p50)/1e3, "p50-us")
	if own.p99 > 0 {
		b.ReportMetric(float64(own.p99)/1e3, "p99-us")
	}
	reportUsage(b, own.used, "")
	b.ReportMetric(0, "ns/op") // with 256 concurrent calls it says less than ops/s
	return own, its
}

// reportUsage reports the processor time per operation of each process that a contender named, if it can be read.
func reportUsage(b *testing.B, used usage, prefix string) {
	b.Helper()
	if used.server > 0 {
		b.ReportMetric(used.client, prefix+"client-us/op")
		b.ReportMetric(used.server, prefix+"service-us/op")
	}
	if used.redis > 0 {
		b.ReportMetric(used.redis, prefix+"redis-us/op")
	}
}

// reportAll reports metrics of a benchmark whose time per operation says nothing.
func reportAll(b *testing.B, metrics map[string]float64) {
	b.Helper()
	for name, value := range metrics {
		b.ReportMetric(value, name)
	}
	b.ReportMetric(0, "ns/op")
}

// medians returns the median of each value over the rounds.
func medians(of []round) round {
	return round{
		rate: middle(of, func(r round) float64 { return r.rate }),
		p50:  middle(of, func(r round) time.Duration { return r.p50 }),
		p99:  middle(of, func(r round) time.Duration { return r.p99 }),
		used: usage{
			client: middle(of, func(r round) float64 { return r.used.client }),
			server: middle(of, func(r round) float64 { return r.used.server }),
			redis:  middle(of, func(r round) float64 { return r.used.redis }),
		},
	}
}

func middle[T ~int64 | ~float64](of []round, value func(round) T) T {
	values := make([]T, len(of))
	for i, r := range of {
		values[i] = value(r)
	}
	return median(values)
}

// spread makes n operations from several goroutines, passing each its number, and returns the latencies. All goroutines stop
// soon after the first error.
func spread(goroutines, n int, do func(goroutine int) error) ([]time.Duration, error) {
	latencies, failed := make([]time.Duration, n), make([]error, goroutines)
	var next atomic.Int64
	var group sync.WaitGroup
	for goroutine := range goroutines {
		group.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				began := time.Now()
				if err := do(goroutine); err != nil {
					failed[goroutine] = err
					next.Store(int64(n))
					return
				}
				latencies[i] = time.Since(began)
			}
		})
	}
	group.Wait()
	return latencies, errors.Join(failed...)
}

// quantile returns the value that the given part of the values does not exceed. It sorts them.
func quantile[T ~int64 | ~float64](part float64, of []T) T {
	slices.Sort(of)
	return of[min(int(part*float64(len(of))), len(of)-1)]
}

func median[T ~int64 | ~float64](of []T) T { return quantile(0.5, of) }
