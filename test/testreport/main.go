// Testreport reads what go test -json prints, and says of it what matters: one line for each package, everything that a
// failed test printed, every test that skipped, and the ten slowest. It exits with 1 when a test failed or skipped: a test
// that skips proves nothing.
//
//	go test -json ./... | go run ./test/testreport
package main

import (
	"fmt"
	"os"
)

func main() {
	run := newReport(os.Stdout)
	if err := run.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !run.finish() {
		os.Exit(1)
	}
}
