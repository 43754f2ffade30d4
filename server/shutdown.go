package server

import (
	"context"
	"fmt"
)

// Shutdown answers the requests that have arrived and those of the next moments, stops listening, and returns when every
// connection is closed. When ctx ends first it returns an error that says how many connections are left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.front.Drain.Begin()
	s.front.Waiters.Stop()
	s.front.Drain.AwaitQuiet(ctx, s.open)
	s.open.StopAccepting()
	s.front.Drain.CloseIdle(ctx, s.open)
	watched := make(chan struct{})
	go func() { // ends within scrapeGrace
		defer close(watched)
		s.stopMetrics()
	}()
	err := s.front.HTTP.ShutdownWithContext(ctx)
	s.front.Shed.Flush(s.front.Log)
	select {
	case <-watched:
	case <-ctx.Done():
	}
	if err != nil {
		return fmt.Errorf("%d connections are cut: %w", s.open.Len(), err)
	}
	return nil
}
