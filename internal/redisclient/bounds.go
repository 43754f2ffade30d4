package redisclient

import (
	"context"
	"time"
)

// bounds is a context with a deadline and no timer: go-redis sets the deadline on its connection, and bounds by times of its
// own what goes before (dialTimeout, poolTimeout).
type bounds struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (b *bounds) Deadline() (time.Time, bool) { return b.deadline, true }
