package client

import "time"

// SetWallClock replaces the clock that advances while the machine is suspended.
func SetWallClock(a *Agent, clock func() time.Time) { a.caller.tokens.wall = clock }
