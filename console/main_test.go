package console

import (
	"testing"

	"go.uber.org/goleak"
	"remit/test/suite"
)

func TestMain(m *testing.M) {
	if !suite.Long { // the race detector keeps the processors busy by itself
		suite.RunAtOnce(4)
	}
	goleak.VerifyTestMain(m,
		// fasthttp's clock of the Date header, one for the process, which never ends.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		// What closes idle workers of a server of fasthttp: it sees that the server has ended after a sleep of 10 seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
