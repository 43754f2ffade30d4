package client_test

import (
	"slices"
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
	before := books.calls()
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
	before := books.calls()
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
	before := books.calls()
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

// report says how many requests the service had in a second and for a charge.
func report(b *testing.B, lease *client.Lease, books *ledger, before int64) {
	b.Helper()
	calls := float64(books.calls() - before)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "charges/s")
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
