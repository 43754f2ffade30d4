package fleet

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/test/suite"
)

// Runs the whole program with the real service and its own Redis.
func TestTotalsOfAFleetReconcile(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the service and runs it for seconds")
	}
	for name, keys := range map[string]bool{"without keys": false, "with keys": true} {
		t.Run(name, func(t *testing.T) {
			cfg := config{agents: 10, sessions: 2, rate: 1000, duration: time.Second, transactions: 30, keys: keys}
			if suite.Long {
				cfg.duration = 2 * time.Second
			}
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), cfg, &stdout, &stderr)
			t.Logf("%s\n%s", &stdout, &stderr)
			if code != exitReconciled {
				t.Errorf("exit code %d, want %d", code, exitReconciled)
			}
			for _, limit := range []string{limitActions, limitValue} {
				if n := refusals(stdout.String(), limit); n == 0 {
					t.Errorf("nothing was refused for %s", limit)
				}
			}
			if over := regexp.MustCompile(`and ([0-9.]+) over`).FindStringSubmatch(stdout.String()); over == nil || over[1] == "0" {
				t.Errorf("no commit exceeded a limit: %q", over)
			}
		})
	}
}

// refusals returns the number of requests refused for a limit, from the report.
func refusals(report, limit string) int { return requests(report, "refused for "+limit) }

// requests returns the number in the report's row of that name.
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
	wantReconciled(t, smallRun(startFake(t, startsSlowly)))
}

func TestRunInClosedLoop(t *testing.T) {
	cfg := smallRun(startFake(t, honest))
	cfg.rate = 0
	wantReconciled(t, cfg)
}

// Without a service the run fails.
func TestRunWithoutService(t *testing.T) {
	addr := must(freeAddress())(t)
	var stderr bytes.Buffer
	if code := run(t.Context(), smallRun("http://"+addr), io.Discard, &stderr); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr.String(), "not checked") {
		t.Errorf("stderr: %s", &stderr)
	}
}

func TestRunInterrupted(t *testing.T) {
	cfg := smallRun(startFake(t, honest))
	cfg.duration = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, cfg, &stdout, &stderr); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("stderr: %s", &stderr)
	}
}
