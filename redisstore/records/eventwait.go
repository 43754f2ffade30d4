package records

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// AwaitEvent waits until the agent may have an event after the one with the id, or until ctx ends, and then returns ctx's
// error. It checks no credential: call Events after it. Errors: ErrUnavailable, when the store was closed.
func (s *Reader) AwaitEvent(ctx context.Context, agent uuid.UUID, after string) error {
	return s.awaitEntry(ctx, s.core.Keys.Events(agent), after)
}

// Waiters returns how many callers wait for the agent's events.
func (s *Reader) Waiters(agent uuid.UUID) int {
	return s.subscriptions.waiters(s.core.Keys.Events(agent))
}

// awaitEntry is AwaitEvent for the stream with this key.
func (s *Reader) awaitEntry(ctx context.Context, key, after string) error {
	t := s.join(key)
	defer s.subscriptions.leave(key, t)
	for {
		newest, moved, err := s.subscriptions.state(t)
		if err != nil || kernel.IsLater(newest, after) {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.core.Closed:
			return redisclient.ErrUnavailable
		}
	}
}

// join adds a waiter to the trail with this key. The first waiter of all starts the polling.
func (s *Reader) join(key string) *trail {
	w := &s.subscriptions
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trails == nil {
		w.trails = map[string]*trail{}
	}
	t := w.trails[key]
	if t == nil {
		t = &trail{moved: make(chan struct{})}
		w.trails[key] = t
	}
	t.waiters++
	if !w.polling {
		w.polling = true
		go s.pollTrails()
	}
	return t
}

// pollTrails polls the trails and wakes waiters until there are none.
func (s *Reader) pollTrails() {
	defer redisclient.RecoverTo(s.subscriptions.fail)
	for {
		keys := s.subscriptions.keys()
		if len(keys) == 0 {
			return
		}
		s.ReadNewest(keys)
		select {
		case <-s.core.Closed:
			return
		case <-time.After(pauseAfter(len(keys))):
		}
	}
}

// ReadNewest reads the newest id of each trail, in one pipeline per server. The next poll repeats reads that fail.
func (s *Reader) ReadNewest(keys []string) {
	ctx, cancel := context.WithTimeout(context.Background(), redisclient.CallTimeout)
	defer cancel()
	newest := make([]*redis.XMessageSliceCmd, len(keys))
	_, err := s.core.Client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			newest[i] = p.XRevRangeN(ctx, key, "+", "-", 1)
		}
		return nil
	})
	s.core.Client.Suspect(err)
	for i, key := range keys {
		switch found, err := newest[i].Result(); {
		case err != nil:
		case len(found) == 0: // Redis has lost its data
			s.subscriptions.notify(key, "")
		default:
			s.subscriptions.notify(key, found[0].ID)
		}
	}
}

// PollPause is the time between two polls of the trails that have waiters. One pipeline polls all trails, so more waiters of
// one trail cost Redis nothing and hold no connection. More than pollRound trails are polled less often, so that the number
// of commands per second stays bounded.
const (
	PollPause = 100 * time.Millisecond
	pollRound = 512
)

// pauseAfter returns how long to wait after a poll of so many trails.
func pauseAfter(trails int) time.Duration {
	return PollPause * time.Duration(max(trails, pollRound)) / pollRound
}

// subscriptions are the agents' audit trails, and the feeds of organizations, that requests of this instance wait for, by
// their keys.
type subscriptions struct {
	mu      sync.Mutex
	trails  map[string]*trail
	polling bool // a goroutine polls the trails; it ends when there is none, or the store is closed
}

type trail struct {
	waiters int
	newest  string        // id of its newest event at the last poll, "" before and for none
	moved   chan struct{} // closed when there is a newer event
	failed  error         // the polling has failed
}

func (w *subscriptions) leave(key string, t *trail) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.waiters--; t.waiters == 0 && w.trails[key] == t {
		delete(w.trails, key)
	}
}

func (w *subscriptions) state(t *trail) (newest string, moved <-chan struct{}, failed error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.newest, t.moved, t.failed
}

// fail wakes all waiters with an error. The next waiter starts the polling again.
func (w *subscriptions) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = false
	for _, t := range w.trails {
		t.failed = err
		close(t.moved)
	}
	clear(w.trails)
}

// keys returns the keys of the trails that have waiters. If there are none, the next waiter starts the polling again.
func (w *subscriptions) keys() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = len(w.trails) > 0
	return slices.Collect(maps.Keys(w.trails))
}

// notify wakes the waiters of a trail if it has a newer event.
func (w *subscriptions) notify(key, newest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trails[key]; t != nil && t.newest != newest {
		t.newest = newest
		close(t.moved)
		t.moved = make(chan struct{})
	}
}

// waiters returns how many wait for the trail with this key.
func (w *subscriptions) waiters(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trails[key]; t != nil {
		return t.waiters
	}
	return 0
}
