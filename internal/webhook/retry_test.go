package webhook

import (
	"testing"
	"time"
)

func TestRetriesGoOnFor24Hours(t *testing.T) {
	t.Parallel()
	first := time.UnixMilli(0)
	now, attempts, earliest := first, 1, []time.Duration{5 * time.Second, 30 * time.Second}
	for {
		next, again := nextAttempt(first, now, attempts)
		if !again {
			break
		}
		if !next.After(now) || next.Sub(now) > time.Hour {
			t.Fatalf("after %d attempts it waits %s", attempts, next.Sub(now))
		}
		if attempts <= len(earliest) && next.Sub(first) > earliest[attempts-1] {
			t.Errorf("retry %d is due after %s", attempts, next.Sub(first))
		}
		now = next
		attempts++
	}
	wantEqual(t, "the last attempt", now, first.Add(giveUpAfter))
	if attempts < 25 || attempts > 60 {
		t.Errorf("%d attempts in a day", attempts)
	}
}

func TestRetriesAreSpread(t *testing.T) {
	t.Parallel()
	drawn := map[time.Duration]bool{}
	for range 100 {
		delay := delayAfter(1)
		if delay < delays[0]/2 || delay > delays[0] {
			t.Fatalf("waits %s", delay)
		}
		drawn[delay] = true
	}
	if len(drawn) < 50 {
		t.Errorf("%d different delays of 100", len(drawn))
	}
}
