package fleet

import (
	"testing"

	"go.uber.org/goleak"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// TestMain fails if a goroutine is left after the tests, except those that fasthttp cannot stop.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(serviceproc.Tests{M: m, End: func() { stopHonest() }},
		// The clock of the Date header: one per process, never stopped.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// Closes idle workers of a server. It sees the end of the server after a sleep of 10 seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		// Closes idle connections of a client. It sees that there are none after a sleep of 5 seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }
