// Package bench measures the hot paths of the service, each beside its floor in the same run: machines differ and change
// from minute to minute, ratios within one run do not.
//
//	go test -run '^$' -bench . -benchtime 20000x ./bench
//
// Each benchmark of a path alternates rounds of the path and of its floors, and reports the medians' ratios as metrics:
//
//	x-bare   operations per second of the path / of a bare fasthttp handler with an answer of the same size
//	x-redis  of the path / of the same script called by plain go-redis, from as many goroutines as there are connections
//	p50-us   median latency of the path
//
// The service is whole: its listener, framing checks, authentication, validation, the store and a real redis-server with
// an append-only file. It runs in the process of the benchmark, as do the clients: both sides share the machine's cores,
// for the floors as well. The clients write prepared bytes and read just enough of an answer to know that it is the
// expected one; every answer is checked.
package bench
