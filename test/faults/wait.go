package faults

import (
	"testing"
	"time"
)

// waitUntil polls the condition until it holds, and fails the test after the limit.
func waitUntil(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	waitEvery(5*time.Millisecond, t, limit, what, condition)
}

// waitEvery is waitUntil with another pause between two looks.
func waitEvery(pause time.Duration, t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", limit, what)
		}
	}
}
