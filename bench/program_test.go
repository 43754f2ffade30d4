package bench

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/test/serviceproc"
)

// readyPatience bounds how long the program may take to be ready.
const readyPatience = 30 * time.Second

// startProgram runs the built program, as a process of its own on a Redis of its own, until the test or benchmark ends. It has
// no limits per client address, because all load comes from one. The settings (NAME=value) are further ones.
func startProgram(tb testing.TB, settings ...string) *service {
	tb.Helper()
	client, redisURL := startRedis(tb, redisproc.Config{Dir: tb.TempDir(), Fsync: "everysec"})
	program := must(serviceproc.LaunchWith(tb.TempDir(), append([]string{
		"REMIT_REDIS_URL=" + redisURL, "REMIT_LISTEN=127.0.0.1:0", "REMIT_RATE_LIMITS=off",
	}, settings...)))(tb)
	tb.Cleanup(func() {
		if err := program.Stop(); err != nil {
			tb.Error(err)
		}
	})
	s := &service{addr: strings.TrimPrefix(program.URL, "http://"), redis: client, pid: program.PID(), redisPID: processOf(tb, client)}
	waitReady(tb, s.addr)
	s.createOrganization(tb)
	return s
}

func waitReady(tb testing.TB, addr string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyPatience)
	defer cancel()
	for {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if ctx.Err() != nil {
			tb.Fatalf("the program is not ready: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processOf returns the process id of a Redis.
func processOf(tb testing.TB, client *redis.Client) int {
	tb.Helper()
	info := client.InfoMap(context.Background(), "server").Item("Server", "process_id")
	return must(strconv.Atoi(info))(tb)
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
