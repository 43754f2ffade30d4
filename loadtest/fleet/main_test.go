package fleet

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/test/redistest"
	"remit/test/suite"
)

// Runs the whole program, which builds the service and starts it on its own Redis.
func TestTotalsOfAFleetReconcile(t *testing.T) {
	redistest.SkipIfShort(t)
	cfg := config{agents: 6, sessions: 2, rate: 300, duration: time.Second, transactions: 30}
	if suite.Long {
		cfg.duration = 2 * time.Second
	}
	report := wantReconciled(t, cfg)
	for _, limit := range []string{limitActions, limitValue} {
		if requests(report, "refused for "+limit) == 0 {
			t.Errorf("nothing was refused for %s", limit)
		}
	}
	if over := regexp.MustCompile(`and ([0-9.]+) over`).FindStringSubmatch(report); over == nil || over[1] == "0" {
		t.Errorf("no commit exceeded a limit: %q", over)
	}
}

func requests(report, row string) int {
	match := regexp.MustCompile(row + ` +(\d+) requests`).FindStringSubmatch(report)
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(match[1])
	return n
}

// An agent that could not refresh during the run refreshes during reconciliation, until it has presented a successor.
func TestTotalsReconcileAfterRefreshesWithoutAnswer(t *testing.T) {
	wantReconciled(t, smallRun(startFaulty(t, startsSlowly)))
}

func TestRunInClosedLoop(t *testing.T) {
	cfg := smallRun(startFaulty(t, noFault))
	cfg.rate = 0
	wantReconciled(t, cfg)
}

func TestRunWithoutService(t *testing.T) {
	code, _, progress := ran(t.Context(), smallRun("http://"+must(freeAddress())(t)))
	if code != exitFailed || !strings.Contains(progress, "not checked") {
		t.Errorf("exit code %d: %s", code, progress)
	}
}

func TestRunInterrupted(t *testing.T) {
	ctx, interrupts := untilCharges(t)
	cfg := smallRun(startFaulty(t, interrupts))
	cfg.duration = time.Minute
	if code, _, progress := ran(ctx, cfg); code != exitFailed || !strings.Contains(progress, "interrupted") {
		t.Errorf("exit code %d: %s", code, progress)
	}
}

func TestWithoutSettings(t *testing.T) {
	got := withoutSettings([]string{"PATH=/bin", "REMIT_REDIS_URL=redis://elsewhere", "REMIT_X=", "HOME=/"})
	if want := []string{"PATH=/bin", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLastOutputKeepsTheEnd(t *testing.T) {
	var o lastOutput
	if got := o.String(); got != "" {
		t.Errorf("without output: %q", got)
	}
	for range 2 * outputKept {
		o.Write([]byte("x"))
	}
	o.Write([]byte("panic: the end\n"))
	if got := o.String(); !strings.HasSuffix(got, "xpanic: the end") || len(o.kept) != outputKept {
		t.Errorf("%d bytes kept, ends %q", len(o.kept), got[len(got)-20:])
	}
}
