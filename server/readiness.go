package server

import (
	"context"
	"sync"
	"time"
)

// readiness asks Redis once for all concurrent requests, because they need no credential.
type readiness struct {
	mu       sync.Mutex
	asked    time.Time
	warnings []string
	err      error
}

func (r *readiness) ask(redis func(context.Context) ([]string, error)) ([]string, error) {
	arrived := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.Before(arrived) {
		r.asked = time.Now()
		r.warnings, r.err = redis(context.Background())
	}
	return r.warnings, r.err
}
