// Package bench measures the hot paths of the service, each beside its floor in the same run: machines differ and change
// from minute to minute, ratios within one run do not.
//
//	go test -run '^$' -bench . -benchmem -benchtime 20000x ./bench
//	go test -run '^$' -bench 'Memory|Resident|Growth|Held' -benchtime 1x ./bench -long
//
// Without -long the benchmarks that take a minute are left out: BenchmarkMemory, BenchmarkResident, BenchmarkGrowth,
// BenchmarkHeld. They do the same work whatever the benchtime is, so 1x is enough. make bench compares a run with the
// recorded one, make report writes docs/performance.md.
//
// A comparison alternates five rounds of the path with five of each floor and reports the ratios of the medians:
//
//	x-bare             operations per second of the path / of a bare fasthttp handler whose answer has as many bytes in
//	                   all, over as many connections
//	x-redis            of the path / of the same script called by plain go-redis, from as many goroutines as there are
//	                   connections
//	x-redis-benchmark  of the path / of the same script called by redis-benchmark -c 50, with -P 1, for batches -P 64. Of a
//	                   batch each charge counts
//	x-1000-sessions    of the path / of the same on a service with a thousand sessions
//	p50-x-redis        median latency of the path / of the script called by go-redis: one operation after the other
//	ops/s, p50-us      of the path
//
// The same script: what the service sends is overheard with MONITOR, and sent again with other ids of the same shape. So
// the floors follow the service. redis-benchmark cannot send a NUL byte; the other ids hold none. A refresh is sent with
// the next generation each time; an exchange writes the same family again, which is a little less than a new one. A list
// takes more than one script and has no such floor.
//
// The service is whole: its listener, framing checks, authentication, validation, the store and a real redis-server with
// an append-only file. It runs in the process of the benchmark, as do the clients: both sides share the machine's cores,
// for the floors as well. The clients write prepared bytes and read just enough of an answer to know that it is the
// expected one; every answer is checked.
//
// BenchmarkInProcess calls the handler without sockets of clients, and counts whose the allocations are:
//
//	own-allocs/op   by the service's own code. The memory profile takes down every allocation (MemProfileRate 1), and
//	                each is laid to the innermost function on its stack that is not of the standard library. If that one
//	                is of this module, but not of package bench, it is own. So strings.Join counts for its caller, and
//	                what go-redis, fasthttp, the router, uuid or the JSON decoder makes counts for them.
//	tiny-allocs/op  of less than 16 bytes, without pointers, that the runtime put beside another one into its block. The
//	                runtime counts them, its profile does not: whose they are is not known
//	allocs/op       all of them, with the bench's own
//
// With -v it lists them by function.
//
// BenchmarkWatched charges in the process while nobody, the access log or a collector of traces looks on. cpu-ns/op is the
// processor's time of this process, the collector in it included.
//
// BenchmarkMemory makes 24,000 sessions (each charged once) and refresh families through the store, of one and of 8 agents
// whose audit trails are full, and divides by their number what used_memory grows by, once it stays the same and without the
// clients' buffers. B/session includes the three index entries. With -v it lists the keys.
//
// BenchmarkResident runs the program itself, built anew, and reads VmRSS from /proc while 10,000 connections are kept
// alive, each after one request: RSS-MiB.
//
// BenchmarkHeld runs the program itself as well, and reports in alternating rounds:
//
//	rate-x-alone    charges per second of 256 connections beside 10,000 idle ones and 1,000 that send a byte now and then
//	                / of 256 connections to a program that has no others
//	goodput-x-peak  charges served per second when twice as many are offered as 256 connections get through, over 2,048
//	                connections and at a set pace / what those 256 get through
//	p99-x-normal    p99 of those that are served then / p99 at half of what 256 get through; from when each was due
//	shed-p99-ms     of those that are turned away
//	RSS-x-before    resident memory after it / before it
//
// For the last four the program and its Redis run on one half of the cores and the clients on the other: else the clients take
// from the program what twice the load costs themselves. With -v it says how each round went.
//
// BenchmarkGrowth loads its sessions by copying, in Redis, one that the service has made for each of 100 agents.
package bench
