// Package bench measures the hot paths of the service (charge, verify, get, exchange, refresh, list), and their cost in memory
// and allocations. Each path runs beside its floors in the same run, because machines differ and change from minute to minute,
// but ratios within one run are stable.
//
//	go test -run '^$' -bench . -benchtime 20000x ./bench
//	go test -run '^$' -bench 'Memory|Resident|Growth|Held|Lease|Gateway' -benchtime 1x ./bench -long
//
// Without -long, the benchmarks that take a minute are skipped: BenchmarkMemory, BenchmarkResident, BenchmarkGrowth,
// BenchmarkHeld, BenchmarkLease, BenchmarkGateway. Their work does not depend on the benchtime, so 1x is enough. make bench compares a run with the
// recorded one, and make report writes docs/performance.md.
//
// A comparison alternates five rounds of the path with five of each floor, and reports the ratios of the medians:
//
//	x-bare             throughput of the path / of a bare fasthttp handler whose answers have the same total size, over the
//	                   same number of connections
//	x-redis            throughput of the path / of the same script called by plain go-redis, from as many goroutines as
//	                   there are connections
//	x-redis-benchmark  throughput of the path / of the same script called by redis-benchmark -c 50, with -P 1, for batches
//	                   -P 64. Each charge of a batch counts
//	x-empty-script     throughput of the path / of an empty script called by redis-benchmark -c 50 -P 64
//	x-1000-sessions    throughput of the path / of the same path on a service with a thousand sessions
//	p50-x-redis        median latency of the path / of the script called by go-redis, one operation after the other
//	ops/s, p50-us,     of the path; p99-us where each operation's latency is known
//	p99-us
//
// The same script: the benchmark records the service's commands with MONITOR, and repeats them with other ids of the same
// shape, so the floors follow the service. The other ids contain no NUL byte, because redis-benchmark cannot send one. A
// refresh uses the next generation each time. An exchange writes the same family again, which costs a little less than a new
// one. A list uses several scripts and has no such floor.
//
// The service is the built program, a process of its own with a profile (default.pgo) if there is one. So are the bare handler
// (built with the same profile) and the redis-server with an append-only file. The clients run in the process of the benchmark.
// They all share the machine's cores, for the floors too. The clients write prepared bytes, and read just enough of an answer
// to check it. They check every answer.
//
// On Linux, a comparison reports the processor time of each process, user and system, per operation:
//
//	client-us/op, service-us/op, redis-us/op    of the path. The client is the process of the benchmark
//	bare-client-us/op, bare-service-us/op       of the bare handler
//	F-redis-us/op                               of Redis while the floor F calls it
//	service-x-bare                              service-us/op / bare-service-us/op
//	redis-x-F                                   redis-us/op / F-redis-us/op. The empty script of F = empty-script has three
//	                                            keys and seven arguments
//	calls/merged-script, merged-%               how many calls the program sent to Redis in one script, if in one with
//	                                            others, and what part of the operations that was
//
// BenchmarkOneConnection is for the latency over one connection: the service runs in the process of the benchmark, as go-redis
// does. BenchmarkPeer measures the programs that the variable PEERS names (docs/performance.md), beside charges (x-charge).
//
// BenchmarkProof verifies tokens that are bound to a key, each time with a new DPoP proof (RFC 9449), beside verify over as many
// connections: x-verify. A round's proofs are signed before its time and its processor time begin, so their making counts nowhere.
// BenchmarkProofCheck checks what the text of one says, from one goroutine, with a key that is known from the proof before. Its
// floor is the signature's check by the standard library, and the hash of what is signed: x-signature, p50-x-signature.
//
// BenchmarkLease charges leases. On one core (GOMAXPROCS) for the Go SDK: redis-x-charge is the processor time of Redis per
// leased charge / per charge over 256 connections; allocs/op is a whole number, rounded down; p50-ns and p99-ns include reading
// the clock. The other SDKs run lease/lease.mjs and lease/lease.py, which print a rate for each second.
//
// BenchmarkInProcess calls the handler without client sockets, and attributes the allocations:
//
//	own-allocs/op   by the service's own code. The memory profile records every allocation (MemProfileRate 1), and each
//	                counts for the innermost function on its stack outside the standard library. It is own if that function
//	                is in this module but not in package bench. So strings.Join counts for its caller, and what go-redis,
//	                fasthttp, the router, uuid or the JSON decoder allocate counts for them.
//	tiny-allocs/op  of less than 16 bytes without pointers, which share a block with another allocation. The runtime counts
//	                them, but its profile does not attribute them
//	allocs/op       all of them, including the bench's own
//
// With -v it lists them by function.
//
// BenchmarkWatched charges in the process without observers, with the access log, and with traces. cpu-ns/op is the processor
// time of this process, including garbage collection.
//
// BenchmarkSuspendAll suspends the 10,000 agents of an organization (suspend-s), and resumes them (resume-s), in seconds.
//
// BenchmarkMemory creates 24,000 sessions (each charged once) and refresh families through the store, of one agent and of 8
// agents whose audit trails are full. It divides the growth of used_memory by their number, once used_memory is stable, without
// the clients' buffers. B/session includes the three index entries. With -v it lists the keys.
//
// BenchmarkResident runs the program itself, and reads VmRSS from /proc while it has 10,000 idle connections, after one request
// on each: RSS-MiB.
//
// BenchmarkHeld also runs the program itself, and reports in alternating rounds:
//
//	rate-x-alone    charges per second over 256 connections beside 10,000 idle ones and 1,000 that send a byte now and then
//	                / over 256 connections to a program without others
//	goodput-x-peak  charges served per second at twice the rate that 256 connections reach, in open loop over 2,048
//	                connections / that rate
//	shed-share      part of the charges that was shed at that overload
//	fleet-shed-share
//	                part that is shed of 1,000 connections that charge again as soon as they are answered
//	p99-x-normal    p99 of the served charges at that overload / p99 at half of the rate; since each was due
//	sent-p99-x-normal
//	                the same since each was sent, of those sent before the last was due
//	late-p99-ms     p99 of the time from when a charge was due until it was sent: the clients had no free connection
//	shed-p99-ms     p99 of the shed charges, since each was due
//	RSS-x-before    resident memory after the overload / before it
//
// For all but the first, the program and its Redis run on one half of the cores and the clients on the other. Otherwise the clients
// would take processor time from the program. With -v it logs each round.
//
// BenchmarkGateway runs the metering gateway, and Go's own reverse proxy (bench/proxy, httputil.ReverseProxy) beside it, as processes
// before one fake provider, which is in the process of the benchmark, as the clients are. Both get the same calls, in alternating rounds:
//
//	first-byte  streamed calls, one after the other: extra-p50-ms is the gateway's median time to the first byte of a body, less the
//	            proxy's
//	short       calls that are answered at once, 64 clients: x-reverse-proxy
//	streams     200 streams of 20 events a second, for about 20 s: p50-us and p99-us from when the provider sends an event until the
//	            client has read it; reverse-proxy-p99-us; processor-% of all cores, by all these processes
//	memory      1,000 streams that go on: by how much the resident memory grows for each (KiB/stream), connections included
//
// BenchmarkGrowth loads its sessions by copying, in Redis, one that the service has created for each of 100 agents.
package bench
