// Command loadtest runs a fleet of simulated agents against the service and then checks its books.
//
//	go run ./loadtest -agents 100 -sessions 2 -rate 5000 -duration 10s -addr http://127.0.0.1:8080
//
// The fleet is made anew in each run: one organization, its agents, their tokens and sessions. Every agent acts on
// its sessions, refreshes its tokens now and then, and ends its sessions. Some sessions are too small for what is
// requested of them, so that both limits refuse some actions. A share of the actions (-transactions) are transactions: begun
// with a hold, and then committed, rolled back, undone after the commit, or left to the session's end.
//
// What arrives, and when, is the -scenario (scenario.go, mix.go):
//
//	steady  actions, evenly (the default)
//	burst   actions at 5/9 of the -rate, and at 25/9 of it in each fifth of twenty slots
//	storm   as steady, but the access tokens of all agents expire at once half-way through, and all agents call at once
//	mixed   evenly: charges, reads, verification by a gateway, transactions, batches, refreshes, exchanges, sessions made
//	        and ended, lists
//
// Agents act through the Go SDK (package client). By default it sends each request once and without an idempotency key,
// which is the lightest request there is, and what gets lost stays in doubt. With -keys writes carry keys and are sent
// again when their answer is lost, as the SDK does for its users; the service must count them once all the same.
//
// Guarantees of the measurement: the load is open loop (unless -rate is 0), and a latency counts from the moment the
// action was due, not from when a worker was free to send it; that of a commit or a rollback from the answer before it.
// The books go by what went over the wire (tape.go), so nothing that the SDK repeats or replaces is hidden from them.
// Load goes to this machine only.
//
// With -report FILE.html the run is drawn as well: one page that needs nothing else. With -compare the service's charge is
// measured beside its floors in the same run (compare.go, floors.go); only the ratios mean something elsewhere. The flags
// -agents, -sessions, -rate, -duration, -keys and -addr say how large a run is and against what. docs/loadtest.md tells
// more.
//
// What is checked afterwards stands in books.go. The exit code is 0 when the books balance, 1 when they do not or
// could not be checked, and 2 when the flags make no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitReconciled = 0
	exitFailed     = 1
	exitUsage      = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cfg, err := parseConfig(os.Args[1:], os.Stderr)
	code := exitUsage
	switch {
	case errors.Is(err, flag.ErrHelp):
		code = exitReconciled
	case err == nil:
		code = run(ctx, cfg, os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// run does one load test and returns the exit code. The table goes to stdout; progress and failures go to stderr. All
// that it starts has stopped when it returns, also when ctx was cancelled.
func run(ctx context.Context, cfg config, stdout, stderr io.Writer) int {
	file, err := newReportFile(cfg.report)
	if err != nil {
		fmt.Fprintln(stderr, "loadtest:", err)
		return exitUsage
	}
	defer file.discard()
	var own *service
	if cfg.addr == "" {
		fmt.Fprintln(stderr, "loadtest: no -addr: building the service, starting it on a Redis of its own")
		if own, err = startService(ctx); err != nil {
			fmt.Fprintln(stderr, "loadtest:", err)
			return exitFailed
		}
		defer func() {
			if err := own.stop(); err != nil {
				fmt.Fprintln(stderr, "loadtest:", err)
			}
		}()
		cfg.addr = own.addr
	}
	return runOn(ctx, cfg, own, file, stdout, stderr)
}

// runOn does one load test of the service at cfg.addr, which is own if it was started for this, and returns the exit code.
func runOn(ctx context.Context, cfg config, own *service, file *reportFile, stdout, stderr io.Writer) int {
	var err error
	r := result{own: own != nil, began: time.Now()}
	r.fleet, r.unchecked = runFleet(ctx, cfg, stderr)
	writeTable(stdout, r.fleet)
	if r.unchecked != nil {
		fmt.Fprintln(stderr, "loadtest: the totals were not checked:", r.unchecked)
	} else {
		writeTotals(stdout, r.fleet)
	}
	if cfg.compare && r.unchecked == nil {
		if r.floors, err = compare(ctx, r.fleet, own, compareRound, stderr); err != nil {
			fmt.Fprintln(stderr, "loadtest: the floors were not measured:", err)
		} else {
			writeComparison(stdout, r.floors)
		}
	}
	if failed := file.report(r); failed != nil {
		fmt.Fprintln(stderr, "loadtest:", failed)
		return exitFailed
	}
	if err != nil || r.unchecked != nil || !r.fleet.audit.clean() {
		return exitFailed
	}
	return exitReconciled
}

// runFleet sets a fleet up, lets it act, and settles its sessions. What it found is in the fleet's audit; the error
// says why there is nothing to be found. The fleet is never nil.
func runFleet(ctx context.Context, cfg config, stderr io.Writer) (*fleet, error) {
	f, err := newFleet(cfg)
	if err != nil {
		return f, err
	}
	fmt.Fprintf(stderr, "loadtest: setting up %d agents with %d sessions at %s\n", cfg.agents, cfg.fleetSessions(), cfg.addr)
	if err := f.setUp(ctx); err != nil {
		return f, fmt.Errorf("set-up: %w", err)
	}
	stopProgress := startProgress(f.stats, stderr, time.Second)
	f.act(ctx)
	stopProgress()
	if err := ctx.Err(); err != nil {
		return f, errors.New("interrupted")
	}
	fmt.Fprintln(stderr, "loadtest: reconciling totals")
	if err := f.reconcile(ctx); err != nil {
		return f, fmt.Errorf("settling: %w", err)
	}
	return f, nil
}
