package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"remit/test/serviceproc"
)

// bareProgram builds the bare handler once, with the profile that the service is built with.
var bareProgram = sync.OnceValues(func() (string, error) {
	profile, err := filepath.Abs("../default.pgo")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(profile); err != nil || strings.Contains(os.Getenv("GOFLAGS"), "-pgo=off") {
		profile = "off"
	}
	return serviceproc.Build("remit/bench/bare", "-pgo="+profile)
})

// bare calls a server that only answers, with that many bytes in total, over as many connections as the path has.
func bare(tb testing.TB, size, connections int) contender {
	tb.Helper()
	addr, pid := startBare(tb, size)
	c := timed("bare", connect(tb, addr, connections, same(get("/", ""))).run)
	c.server = pid
	return c
}

// startBare runs a fasthttp server that only answers, with that many bytes in total, until the test or benchmark ends.
func startBare(tb testing.TB, size int) (addr string, pid int) {
	tb.Helper()
	binary := must(bareProgram())(tb)
	process := must(serviceproc.StartProcess(exec.Command(binary, strconv.Itoa(size))))(tb)
	tb.Cleanup(process.Kill)
	url := must(serviceproc.AwaitURL(process))(tb)
	return strings.TrimPrefix(url, "http://"), process.PID()
}
