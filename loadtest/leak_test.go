package main

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails when a goroutine is left once all has ended, but for those of fasthttp that cannot be told to end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The clock of the Date header, one for the process, which never ends.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// What closes idle workers of a server: it sees that the server has ended after a sleep of 10 seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		// What closes idle connections of a client: it sees that there are none after a sleep of 5 seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}
