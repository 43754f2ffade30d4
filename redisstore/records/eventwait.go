package records

import (
	"context"
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
