package server

import (
	"context"
	"fmt"
	"time"
)

// Shutdown answers the requests that have arrived and those of the next moments, stops listening, and returns when every
// connection is closed. When ctx ends first it returns an error that says how many connections are left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain.lastRequest.Store(time.Now().UnixNano())
	s.drain.begun.Store(true)
	s.waiters.end()
	s.awaitQuiet(ctx)
	s.open.StopAccepting()
	for s.open.CloseIdle(s.drain.quiet) > 0 && pauseUnless(ctx, drainStep) {
	}
	watched := make(chan struct{})
	go func() { // ends within scrapeGrace
		defer close(watched)
		s.stopMetrics()
	}()
	err := s.http.ShutdownWithContext(ctx)
	s.shed.flush(s.log)
	select {
	case <-watched:
	case <-ctx.Done():
	}
	if err != nil {
		return fmt.Errorf("%d connections are cut: %w", s.open.Len(), err)
	}
	return nil
}

// awaitQuiet waits until no request has come for a while, or the time for that is over.
func (s *Server) awaitQuiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.drain.most)
	defer cancel()
	for s.open.Len() > 0 && time.Since(time.Unix(0, s.drain.lastRequest.Load())) < s.drain.quiet && pauseUnless(ctx, drainStep) {
	}
}

func pauseUnless(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
