package client_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"remit/client"
	"remit/money"
)

var leased = client.Charge{ActionType: "llm.call", Value: 12}

// warmLease is a lease whose grants have grown to the pace.
func warmLease(b testing.TB) (*client.Lease, *ledger) {
	b.Helper()
	books := newLedger(1e15, 1e9*money.USD)
	books.fault = func(int, string) fault { return fault{before: 300 * time.Microsecond} } // a round trip
	lease := books.lease(b, client.LeaseOptions{})
	for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; {
		if err := lease.Charge(b.Context(), leased); err != nil {
			b.Fatal(err)
		}
	}
	return lease, books
}

// BenchmarkLeasedCharge charges from one goroutine.
func BenchmarkLeasedCharge(b *testing.B) {
	lease, books := warmLease(b)
	ctx := b.Context()
	before := cost{books.calls(), processorTime(b)}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := lease.Charge(ctx, leased); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	report(b, lease, books, before)
}

// BenchmarkLeasedChargeParallel charges from one goroutine for each processor.
func BenchmarkLeasedChargeParallel(b *testing.B) {
	lease, books := warmLease(b)
	ctx := b.Context()
	before := cost{books.calls(), processorTime(b)}
	b.ResetTimer()
	b.RunParallel(func(next *testing.PB) {
		for next.Next() {
			if err := lease.Charge(ctx, leased); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	report(b, lease, books, before)
}

// BenchmarkLeasedChargeP99 measures each charge, with the reading of the clock.
func BenchmarkLeasedChargeP99(b *testing.B) {
	lease, books := warmLease(b)
	ctx := b.Context()
	took := make([]time.Duration, b.N)
	before := cost{books.calls(), processorTime(b)}
	b.ResetTimer()
	for i := range took {
		begin := time.Now()
		if err := lease.Charge(ctx, leased); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(begin)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
	b.ReportMetric(float64(took[len(took)*999/1000]), "p99.9-ns")
	report(b, lease, books, before)
}

// cost is what a benchmark has used so far.
type cost struct {
	calls     int64         // of the service
	processor time.Duration // user and system
}

// processorTime is that of this process. Unlike the clock it does not count the time of others on the same core.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report says how many charges a second of one core makes, and how many requests the service has in a second.
func report(b *testing.B, lease *client.Lease, books *ledger, before cost) {
	b.Helper()
	calls, took := float64(books.calls()-before.calls), processorTime(b)-before.processor
	b.ReportMetric(float64(b.N)/took.Seconds(), "charges/core-s")
	b.ReportMetric(calls/b.Elapsed().Seconds(), "requests/s")
	if err := lease.Close(b.Context()); err != nil {
		b.Error(err)
	}
	books.check(b)
}

func (b *ledger) calls() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, count := range b.counts {
		n += count
	}
	return int64(n)
}
