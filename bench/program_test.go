package bench

import (
	"context"
	"net/http"
	"strconv"
	"strings"
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
