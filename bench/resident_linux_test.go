package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/redisproc"
)

const (
	idleConnections = 10_000
	readyPatience   = 30 * time.Second
	stopPatience    = 15 * time.Second
	// settling is what the program gets to come to rest before its memory is read.
	settling = time.Second
)

// BenchmarkResident says what the program itself takes in memory while ten thousand connections are kept alive, each of
// which has asked once.
func BenchmarkResident(b *testing.B) {
	onlyLong(b)
	before, after := residentWith(b, idleConnections)
	b.ReportMetric(before, "RSS-MiB-before")
	b.ReportMetric(after, "RSS-MiB")
	b.ReportMetric(0, "ns/op")
}

// residentWith returns the resident memory of the built program, in MiB, before and with so many connections.
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
	time.Sleep(settling)
	return before, resident(tb, pid)
}

// needFiles fails when this process may not open so many files. (Go has raised the soft limit to the hard one.)
func needFiles(tb testing.TB, files int) {
	tb.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(files) {
		tb.Fatalf("this needs %d open files, the limit is %d (%v): raise it with ulimit -Hn", files, limit.Cur, err)
	}
}

// startProgram builds the program and runs it on a Redis of its own until the test or benchmark ends.
func startProgram(tb testing.TB) (addr string, pid, redisPID int) {
	tb.Helper()
	binary := filepath.Join(tb.TempDir(), "remit")
	if output, err := exec.Command("go", "build", "-o", binary, "remit").CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, output)
	}
	client, redisURL := startRedis(tb, redisproc.Config{Dir: tb.TempDir(), Fsync: "everysec"})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	addr = free.Addr().String()
	free.Close()
	program := exec.Command(binary)
	program.Env = []string{"PATH=" + os.Getenv("PATH"), "REMIT_REDIS_URL=" + redisURL, "REMIT_LISTEN=" + addr}
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the bench, which stops it
	if err := program.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { stopProgram(tb, program) })
	waitReady(tb, addr)
	return addr, program.Process.Pid, processOf(tb, client)
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

func stopProgram(tb testing.TB, program *exec.Cmd) {
	_ = program.Process.Signal(syscall.SIGTERM)
	killer := time.AfterFunc(stopPatience, func() { _ = program.Process.Kill() })
	defer killer.Stop()
	if err := program.Wait(); err != nil {
		tb.Errorf("the program did not end in order: %v", err)
	}
}

// resident reads VmRSS, in MiB.
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

// processOf is the process id of a Redis.
func processOf(tb testing.TB, client *redis.Client) int {
	tb.Helper()
	info := client.InfoMap(context.Background(), "server").Item("Server", "process_id")
	pid, err := strconv.Atoi(info)
	if err != nil {
		tb.Fatal(err)
	}
	return pid
}
