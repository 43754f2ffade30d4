package main

// leaseTable shows charges that SDKs take from a lease, and what remains of them in Redis.
func leaseTable(r *run) string {
	rows := []string{row("Go, one core", digits(r.get(leasedInGo, "ops/s")), digits(r.get(leasedInGo, "p50-ns"))+" ns", digits(r.get(leasedInGo, "p99-ns"))+" ns",
		digits(r.get(leasedInGo, "allocs/op")), digits(1000*r.get(leasedInGo, "redis-us/op"))+" ns")}
	for _, sdk := range []struct{ what, benchmark string }{{"TypeScript", "Lease/typescript"}, {"Python", "Lease/python"}} {
		rows = append(rows, row(sdk.what, digits(r.get(sdk.benchmark, "ops/s")), "", "", "", ""))
	}
	return table("SDK | charges per second | p50 | p99 | allocations | Redis per charge", rows)
}
