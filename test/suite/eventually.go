package suite

import (
	"testing"
	"time"
)

// Eventually returns when the condition holds. It is for what only time brings, and fails the test after a minute.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for ends := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(ends) {
			tb.Fatalf("not in a minute: %s", what)
		}
	}
}
