package main

// leaseTable shows charges that SDKs take from a lease, and what remains of them in Redis.
func leaseTable(r *run) string {
	const golang = "Lease/go"
	rows := []string{row("Go, one core", digits(r.get(golang, "ops/s")), digits(r.get(golang, "p99-ns"))+" ns",
		digits(r.get(golang, "allocs/op")), digits(1000*r.get(golang, "redis-us/op"))+" ns")}
	for _, sdk := range []struct{ what, benchmark string }{{"TypeScript", "Lease/typescript"}, {"Python", "Lease/python"}} {
		rows = append(rows, row(sdk.what, digits(r.get(sdk.benchmark, "ops/s")), "", "", ""))
	}
	return table("SDK | charges per second | p99 | allocations | Redis per charge", rows)
}
