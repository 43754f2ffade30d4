package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// A server that is told to stop first tells its clients: for a while it goes on as before, and says with every answer
// that the connection closes. Clients at work have then all been told, and those that are not are left with connections
// on which nothing happens. Closing these at once instead would lose every request that is just under way to them.
const (
	drainTime = time.Second            // of telling, at the most
	quietTime = 400 * time.Millisecond // without a request ends it earlier
	drainStep = 5 * time.Millisecond
)

// drain is how far a server is with stopping.
type drain struct {
	most, quiet time.Duration // drainTime and quietTime, but for tests

	begun   atomic.Bool
	lastAsk atomic.Int64 // when the last request came, in ns since 1970
}

// tell adds to an answer that its connection closes, once the server stops.
func (d *drain) tell(ctx *fasthttp.RequestCtx) {
	if d.begun.Load() {
		d.lastAsk.Store(time.Now().UnixNano())
		ctx.SetConnectionClose()
	}
}

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
