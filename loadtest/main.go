// Command loadtest runs a fleet of simulated agents against the service, and then reconciles its totals.
//
//	go run ./loadtest -agents 100 -sessions 2 -rate 5000 -duration 10s -addr http://127.0.0.1:8080
//
// README.md says what arrives in each -scenario, what is measured, and what must reconcile. Load goes to this machine only. The exit
// code is 0 when the totals reconcile, 1 when they do not or could not be checked, and 2 when a flag is invalid.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"remit/loadtest/fleet"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := fleet.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
