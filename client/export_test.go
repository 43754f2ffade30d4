package client

import "time"

// SetWallClock makes a test's own the clock that goes on while the machine sleeps.
func SetWallClock(a *Agent, clock func() time.Time) { a.caller.tokens.wall = clock }
