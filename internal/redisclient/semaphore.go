package redisclient

import (
	"context"
	"sync"
	"time"
)

// semaphore bounds how many pipelines of one kind are in flight that belong to one caller each: of batches, which are long,
// or of lists. They use the same connections as the pipeliners, which must not wait behind them. Callers that wait for a place
// take turns by flow, as in a pipeliner. A caller that has a place must not wait for another one.
type semaphore struct {
	mu       sync.Mutex
	inFlight int
	queue    fairQueue
}

const (
	maxInFlight = 4   // with those of the lists and of the pipeliners no more than go-redis keeps connections for pipelines
	maxWaiting  = 256 // of one flow, before more are shed at once
	// maxWait is how long a caller waits for a place at the most. What is left of CallTimeout is for the pipeline.
	maxWait = poolTimeout
)

// Acquire waits for a place. It returns errQueueFull when there is none in time; else the caller must call Release.
func (s *semaphore) Acquire(ctx context.Context, f Flow) error {
	p, err := s.join(f)
	if p == nil {
		return err
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if !s.leave(p) {
		s.Release() // it had got a place at that moment
	}
	return errQueueFull
}

// join takes a place if one is free, or enqueues the call, or refuses.
func (s *semaphore) join(f Flow) (*pendingCall, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight < maxInFlight {
		s.inFlight++
		return nil, nil
	}
	if of := s.queue.queues[f]; of != nil && of.length >= maxWaiting {
		return nil, errQueueFull
	}
	p := &pendingCall{flow: f, done: make(chan struct{}, 1)}
	s.queue.add(p)
	return p, nil
}

func (s *semaphore) leave(p *pendingCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.remove(p)
}

// Release gives the place to the caller whose turn it is.
func (s *semaphore) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.queue.take(); p != nil {
		p.done <- struct{}{}
		return
	}
	s.inFlight--
}

// load returns how many callers wait, and how many have a place.
func (s *semaphore) load() load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return load{s.queue.waiting, s.inFlight}
}

// Turn waits for a place for an operation that reads with many calls, of which four run at once, so that a flood of them leaves
// the flow's queue to its other calls. The caller calls the function that it returns, and does not call Turn again before.
func (c *Client) Turn(ctx context.Context, f Flow) (func(), error) {
	if err := c.turns.Acquire(ctx, f); err != nil {
		return nil, err
	}
	return c.turns.Release, nil
}
