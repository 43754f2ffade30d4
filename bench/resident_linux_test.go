package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/serviceproc"
	"remit/redisproc"
)

const (
	idleConnections = 10_000
	readyPatience   = 30 * time.Second
	// idleTime is how long the program may become idle before its memory is read.
	idleTime = time.Second
)

// BenchmarkResident measures the resident memory of the program with ten thousand idle connections, after one request on
// each.
func BenchmarkResident(b *testing.B) {
	onlyLong(b)
	before, after := residentWith(b, idleConnections)
	b.ReportMetric(before, "RSS-MiB-before")
	b.ReportMetric(after, "RSS-MiB")
	b.ReportMetric(0, "ns/op")
}

// residentWith returns the resident memory of the program in MiB, without and with that many connections.
func residentWith(tb testing.TB, connections int) (before, after float64) {
	tb.Helper()
	needFiles(tb, connections+100)
	addr, pid, _ := startProgram(tb)
	key := askAt(tb, addr, "", "/v1/organizations", `{"name":"bench"}`).Key
	a := newAgentAt(tb, addr, key)
	before = resident(tb, pid)
	for _, conn := range connect(tb, addr, connections, same(get("/v1/auth/verify", a.bearer()))) {
		if err := conn.take(); err != nil {
			tb.Fatal(err)
		}
	}
	time.Sleep(idleTime)
	return before, resident(tb, pid)
}

// needFiles fails if this process may not open that many files. (Go raises the soft limit to the hard one.)
func needFiles(tb testing.TB, files int) {
	tb.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(files) {
		tb.Fatalf("this needs %d open files, the limit is %d (%v): raise it with ulimit -Hn", files, limit.Cur, err)
	}
}

// startProgram runs the program on its own Redis until the test or benchmark ends.
func startProgram(tb testing.TB) (addr string, pid, redisPID int) {
	tb.Helper()
	client, redisURL := startRedis(tb, redisproc.Config{Dir: tb.TempDir(), Fsync: "everysec"})
	program, err := serviceproc.LaunchWith(tb.TempDir(), []string{"REMIT_REDIS_URL=" + redisURL, "REMIT_LISTEN=127.0.0.1:0"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := program.Stop(); err != nil {
			tb.Error(err)
		}
	})
	addr = strings.TrimPrefix(program.URL, "http://")
	waitReady(tb, addr)
	return addr, program.PID(), processOf(tb, client)
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

// resident reads VmRSS in MiB.
func resident(tb testing.TB, pid int) float64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	text, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes, err := strconv.ParseFloat(text, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kilobytes / 1024
}

// processOf returns the process id of a Redis.
func processOf(tb testing.TB, client *redis.Client) int {
	tb.Helper()
	info := client.InfoMap(context.Background(), "server").Item("Server", "process_id")
	pid, err := strconv.Atoi(info)
	if err != nil {
		tb.Fatal(err)
	}
	return pid
}
