package bench

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"remit/internal/redisproc"
	"remit/test/serviceproc"
)

// startProgram runs the built program, as a process of its own on a Redis of its own, until the test or benchmark ends. It has
// no limits per client address, because all load comes from one.
func startProgram(tb testing.TB) *service {
	tb.Helper()
	client, redis := startRedis(tb, redisproc.Config{Dir: tb.TempDir()})
	program := must(serviceproc.LaunchWith(tb.TempDir(), []string{
		"REMIT_REDIS_URL=" + redis.URL(), "REMIT_LISTEN=127.0.0.1:0", "REMIT_RATE_LIMITS=off",
	}))(tb)
	tb.Cleanup(func() { noError(tb, program.Stop()) })
	s := &service{addr: strings.TrimPrefix(program.URL, "http://"), redis: client, redisURL: redis.URL(), pid: program.PID(), redisPID: redis.PID()}
	noError(tb, program.Await(func() bool {
		status, _ := s.send(tb, http.MethodGet, "/readyz", "")
		return status == http.StatusOK
	}))
	s.createOrganization(tb)
	return s
}

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
	return timed("bare", connect(tb, addr, connections, same(get("/", ""))).run).beside(pid, 0)
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
