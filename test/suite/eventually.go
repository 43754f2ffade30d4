package suite

import (
	"testing"
	"time"
)

// Eventually returns when the condition holds. It is for what only time brings, and fails the test after a minute; in make test-all, in
// which several times as many processes want the processors, after five.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	patience := time.Minute
	if Long {
		patience *= 5
	}
	for ends := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(ends) {
			tb.Fatalf("not in %v: %s", patience, what)
		}
	}
}
