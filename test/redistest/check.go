package redistest

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"
)

// Must is for calls that the test takes for granted: Must(f())(t).
func Must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// WantError checks for a sentinel, or for a refusal of a type of its own by its value.
func WantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) && !reflect.DeepEqual(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// WaitAtMost waits for all goroutines of the group, and fails the test if that takes longer.
func WaitAtMost(t *testing.T, limit time.Duration, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Errorf("still waiting after %s", limit)
		<-done
	}
}
