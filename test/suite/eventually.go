package suite

import (
	"testing"
	"time"
)

// Eventually returns when the condition holds. It is for what only time brings, and fails the test after a minute; in make test-all with
// the race detector, which makes miniredis ten times as slow while many processes want the processors, after five.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	patience := time.Minute
	if Long && RaceDetector {
		patience *= 5
	}
	for ends := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(ends) {
			tb.Fatalf("not in %v: %s", patience, what)
		}
	}
}
