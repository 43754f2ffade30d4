package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	idleConnections = 10_000
	// idleTime is how long the program may become idle before its memory is read.
	idleTime = time.Second
)

// BenchmarkResident measures the resident memory of the program with ten thousand idle connections, after one request on
// each.
func BenchmarkResident(b *testing.B) {
	onlyLong(b)
	before, after := residentWith(b, idleConnections)
	reportAll(b, map[string]float64{"RSS-MiB-before": before, "RSS-MiB": after})
}

// residentWith returns the resident memory of the program in MiB, without and with that many connections.
func residentWith(tb testing.TB, connections int) (before, after float64) {
	tb.Helper()
	needFiles(tb, connections+100)
	s := startProgram(tb)
	a := s.newAgent(tb)
	before = resident(tb, s.pid)
	greet(tb, connect(tb, s.addr, connections, same(get("/v1/auth/verify", a.bearer()))))
	time.Sleep(idleTime)
	return before, resident(tb, s.pid)
}

// needFiles fails if this process may not open that many files. (Go raises the soft limit to the hard one.)
func needFiles(tb testing.TB, files int) {
	tb.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(files) {
		tb.Fatalf("this needs %d open files, the limit is %d (%v): raise it with ulimit -Hn", files, limit.Cur, err)
	}
}

// resident reads VmRSS in MiB.
func resident(tb testing.TB, pid int) float64 {
	tb.Helper()
	status := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(tb)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	text, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes := must(strconv.ParseFloat(text, 64))(tb)
	return kilobytes / 1024
}

// TestResidentMemoryOfTheProgramIsRead keeps BenchmarkResident working.
func TestResidentMemoryOfTheProgramIsRead(t *testing.T) {
	if before, after := residentWith(t, 20); before <= 0 || after <= 0 {
		t.Errorf("%v MiB before and %v MiB with connections", before, after)
	}
}

// TestHeldLoadsAreMeasured runs BenchmarkHeld briefly. Its results mean nothing here.
func TestHeldLoadsAreMeasured(t *testing.T) {
	brief := heldLoad{idle: 20, slow: 5, active: 4, calls: 200, fleet: 20, crowd: 50, warmUp: 50 * time.Millisecond, span: 100 * time.Millisecond, rounds: 1}
	if got := besideIdleAndSlow(t, brief); got["rate-x-alone"] <= 0 {
		t.Errorf("%v", got)
	}
	if got := atTwiceTheRate(t, brief); got["goodput-x-peak"] <= 0 || got["p99-x-normal"] <= 0 || got["RSS-x-before"] <= 0 {
		t.Errorf("%v", got)
	}
}
