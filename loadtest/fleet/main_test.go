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

func TestRunDetectsFaultsOfTheService(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault fault
		code  int
		rule  rule // expected in the output
	}{
		{"honest", honest, exitReconciled, ""},
		{"charges twice", chargesTwice, exitFailed, ruleInvented},
		{"charges twice and lies", chargesTwiceLie, exitFailed, ruleSurplus},
		{"loses charges", losesCharges, exitFailed, ruleLost},
		{"forgets limits", forgetsLimits, exitFailed, ruleExceeded},
		{"refuses early", refusesEarly, exitFailed, ruleRefusal},
		{"names the wrong limit", namesWrongLimit, exitFailed, ruleRefusal},
		{"miscounts", miscounts, exitFailed, ruleRemainder},
		{"refuses new tokens", refusesTokens, exitFailed, ruleToken},
		{"keeps spent tokens", keepsTokens, exitFailed, ruleRefresh},
		{"breaks the successor", breaksSuccessor, exitFailed, ruleRefresh},
		{"never ends", neverEnds, exitFailed, ruleEnd},
		{"acts after the end", actsAfterEnd, exitFailed, ruleActedAfter},
		{"refuses a token it then accepts again", refusesTokensOnce, exitFailed, ruleToken},
		{"loses holds", losesHolds, exitFailed, ruleLost},
		{"keeps holds", keepsHolds, exitFailed, ruleSurplus},
		{"overspends", overspends, exitFailed, ruleExceeded},
		{"forgets overage", forgetsOverage, exitFailed, ruleLost},
		{"invents overage", inventsOverage, exitFailed, ruleRefusal},
		{"skips numbers", skipsNumbers, exitFailed, ruleSequence},
		{"repeats numbers", repeatsNumbers, exitFailed, ruleSequence},
		{"charges rollbacks", chargesRollbacks, exitFailed, ruleSurplus},
		{"keeps what was undone", keepsUndone, exitFailed, ruleSurplus},
		{"leaves transactions pending", leavesPending, exitFailed, ruleEnd},
		{"forgets commits", forgetsCommits, exitFailed, ruleLost},
		{"refuses to settle", refusesCommits, exitFailed, ruleStatus},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), smallRun(startFake(t, test.fault)), &stdout, &stderr)
			if code != test.code || !strings.Contains(stdout.String(), string(test.rule)) {
				t.Errorf("exit code %d, want %d and %q in\n%s%s", code, test.code, test.rule, &stdout, &stderr)
			}
		})
	}
}

// The outcome of charges with lost answers stays unknown, and they are not repeated: a repetition would be stored, and the
// totals would not reconcile.
func TestTotalsReconcileWithUnknownOutcomes(t *testing.T) {
	for name, f := range map[string]fault{"503": failsAfterCharge, "closed connection": hangsUp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), smallRun(startFake(t, f)), &stdout, &stderr)
			if code != exitReconciled || requests(stdout.String(), "outcome unknown") == 0 {
				t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
			}
		})
	}
}

// With keys no outcome stays unknown: the SDK repeats requests with lost answers, and the service executes them once.
func TestRetriesWithKeysAreIdempotent(t *testing.T) {
	for name, f := range map[string]fault{"503": failsAfterCharge, "closed connection": hangsUp} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := smallRun(startFake(t, f))
			cfg.keys = true
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), cfg, &stdout, &stderr)
			if code != exitReconciled || requests(stdout.String(), "outcome unknown") != 0 {
				t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
			}
		})
	}
}

// The run detects a service that executes a repeated key twice.
func TestRunDetectsIgnoredKeys(t *testing.T) {
	cfg := smallRun(startFake(t, ignoresKeys))
	cfg.keys = true
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), cfg, &stdout, &stderr); code != exitFailed || !strings.Contains(stdout.String(), string(ruleSurplus)) {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

// An agent that could not refresh during the run refreshes during reconciliation, until it has presented a successor.
func TestTotalsReconcileAfterRefreshesWithoutAnswer(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), smallRun(startFake(t, startsSlowly)), &stdout, &stderr); code != exitReconciled {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

// A small fleet must reach both limits, or the other tests prove nothing about refusals.
func TestRunReachesBothLimits(t *testing.T) {
	var stdout bytes.Buffer
	run(t.Context(), smallRun(startFake(t, honest)), &stdout, io.Discard)
	for _, limit := range []string{limitActions, limitValue} {
		if refusals(stdout.String(), limit) == 0 {
			t.Errorf("nothing refused for %s in\n%s", limit, &stdout)
		}
	}
}

func TestRunInClosedLoop(t *testing.T) {
	cfg := smallRun(startFake(t, honest))
	cfg.rate = 0
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), cfg, &stdout, &stderr); code != exitReconciled {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

// Without a service the run fails.
func TestRunWithoutService(t *testing.T) {
	addr, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
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
