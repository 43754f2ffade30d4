package webhook

import (
	"math/rand/v2"
	"time"
)

// giveUpAfter is how long after the first attempt the last one may begin.
const giveUpAfter = 24 * time.Hour

// delays are the most that the next attempt waits after so many failures; the last one holds for all later ones.
var delays = []time.Duration{5 * time.Second, 25 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// delayAfter returns how long to wait after so many failed attempts, at least 1. It draws from the upper half of the delay, so that
// deliveries which failed together do not all come again together.
func delayAfter(attempts int) time.Duration {
	most := delays[min(attempts, len(delays))-1]
	return most/2 + rand.N(most/2+1)
}

// nextAttempt returns when to attempt again what failed now for the attempts-th time, and false for never: the last attempt
// is due just before the time is over, not up to an hour earlier.
func nextAttempt(first, now time.Time, attempts int) (time.Time, bool) {
	end := first.Add(giveUpAfter)
	if !now.Before(end) {
		return time.Time{}, false
	}
	next := now.Add(delayAfter(attempts))
	if next.After(end) {
		next = end
	}
	return next, true
}
