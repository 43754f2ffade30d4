package server

import (
	"context"
	"fmt"
	"time"
)

// Shutdown answers what has arrived and what arrives in the next moments, then stops listening, and returns when every
// connection is closed. When ctx ends before, it gives up, and its error says how many are left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain.lastAsk.Store(time.Now().UnixNano())
	s.drain.begun.Store(true)
	s.waiting.end()
	s.awaitQuiet(ctx)
	s.open.StopAccepting()
	for s.open.CloseIdle(s.drain.quiet) > 0 && pauseUnless(ctx, drainStep) {
	}
	watched := make(chan struct{})
	go func() { // which takes half a second at the most
		defer close(watched)
		s.endWatching()
	}()
	err := s.http.ShutdownWithContext(ctx)
	s.turnedAway.end(s.log)
	select {
	case <-watched:
	case <-ctx.Done():
	}
	if err != nil {
		return fmt.Errorf("%d connections are cut: %w", s.open.Len(), err)
	}
	return nil
}

// awaitQuiet returns when nothing is asked any more, or has been for long enough.
func (s *Server) awaitQuiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.drain.most)
	defer cancel()
	for s.open.Len() > 0 && time.Since(time.Unix(0, s.drain.lastAsk.Load())) < s.drain.quiet && pauseUnless(ctx, drainStep) {
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
