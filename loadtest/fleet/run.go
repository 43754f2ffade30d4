// Package fleet runs a fleet of simulated agents against the service, and reconciles its totals. It is all of the command loadtest. Its
// trees also grow in tests that break the service meanwhile ([Growth]).
//
// Agents act through the Go SDK (package client). By default an agent sends each request once and without an idempotency key. That is the
// cheapest request, and if its answer is lost, the outcome stays unknown. With -keys writes carry keys, and the SDK repeats them when
// their answer is lost, as it does for its users. The service must execute them once.
//
// The checks use the requests and answers on the wire (recorder.go), so they also see what the SDK repeats or replaces. They are in the
// check*.go files.
package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// Exit codes.
const (
	exitReconciled = 0
	exitFailed     = 1
	exitUsage      = 2
)

// Main runs the command with these arguments, and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseConfig(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitReconciled
	case err != nil:
		return exitUsage
	}
	return run(ctx, cfg, stdout, stderr)
}

// result is the outcome of a run.
type result struct {
	fleet     *fleet
	unchecked error // why the totals were not checked; nil: they were
	own       bool  // the service was started for the run
	began     time.Time
}

// run does one load test and returns the exit code. The table goes to stdout, progress and errors to stderr. Before it
// returns it stops everything that it has started, even if ctx was cancelled.
func run(ctx context.Context, cfg config, stdout, stderr io.Writer) int {
	say := func(what any) { fmt.Fprintln(stderr, "loadtest:", what) }
	file, err := newReportFile(cfg.report)
	if err != nil {
		say(err)
		return exitUsage
	}
	defer file.discard()
	r := result{own: cfg.addr == ""}
	if r.own {
		say("no -addr: building the service and starting it with its own Redis")
		own, err := startService(ctx)
		if err != nil {
			say(err)
			return exitFailed
		}
		defer func() {
			if err := own.stop(); err != nil {
				say(err)
			}
		}()
		cfg.addr = own.addr
	}
	r.began = time.Now()
	r.fleet, r.unchecked = runFleet(ctx, cfg, stderr)
	writeTable(stdout, r.fleet)
	if r.unchecked == nil {
		writeTotals(stdout, r.fleet)
	} else {
		say(fmt.Errorf("the totals were not checked: %w", r.unchecked))
	}
	if err := file.report(r); err != nil {
		say(err)
		return exitFailed
	}
	if r.unchecked != nil || !r.fleet.audit.clean() {
		return exitFailed
	}
	return exitReconciled
}

// runFleet sets up a fleet, makes it act, and reconciles its sessions. The fleet's audit has the violations. The error says
// why the totals were not checked. The fleet is never nil.
func runFleet(ctx context.Context, cfg config, stderr io.Writer) (*fleet, error) {
	f, err := newFleet(cfg)
	if err != nil {
		return f, err
	}
	defer f.dropLeases()
	fmt.Fprintf(stderr, "loadtest: setting up %s at %s\n", cfg.size(), cfg.addr)
	if err := f.setUp(ctx); err != nil {
		return f, fmt.Errorf("set-up: %w", err)
	}
	stopProgress := startProgress(f.stats, stderr, time.Second)
	f.act(ctx)
	stopProgress()
	if cfg.session != "" {
		ctx = context.WithoutCancel(ctx) // an interruption ends the run early, and no more
	}
	if err := ctx.Err(); err != nil {
		return f, errors.New("interrupted")
	}
	fmt.Fprintln(stderr, "loadtest: reconciling totals")
	if err := f.reconcile(ctx); err != nil {
		return f, fmt.Errorf("reconciliation: %w", err)
	}
	return f, nil
}
