package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// AwaitEvent waits until the agent may have an event after the one with the id, or until ctx ends, and then returns ctx's
// error. It checks no credential: call Events after it. Errors: ErrUnavailable, when the store was closed.
func (s *Store) AwaitEvent(ctx context.Context, agent uuid.UUID, after string) error {
	return s.awaitEntry(ctx, s.keys.events(agent), after)
}

// awaitEntry is AwaitEvent for the stream with this key.
func (s *Store) awaitEntry(ctx context.Context, key, after string) error {
	t := s.join(key)
	defer s.subscriptions.leave(key, t)
	for {
		newest, moved, err := s.subscriptions.state(t)
		if err != nil || isLater(newest, after) {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return ErrUnavailable
		}
	}
}

// join adds a waiter to the trail with this key. The first waiter of all starts the polling.
func (s *Store) join(key string) *trail {
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
func (s *Store) pollTrails() {
	defer redisclient.RecoverTo(s.subscriptions.fail)
	for {
		keys := s.subscriptions.keys()
		if len(keys) == 0 {
			return
		}
		s.readNewest(keys)
		select {
		case <-s.closed:
			return
		case <-time.After(pauseAfter(len(keys))):
		}
	}
}

// readNewest reads the newest id of each trail, in one pipeline per server. The next poll repeats reads that fail.
func (s *Store) readNewest(keys []string) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	newest := make([]*redis.XMessageSliceCmd, len(keys))
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			newest[i] = p.XRevRangeN(ctx, key, "+", "-", 1)
		}
		return nil
	})
	s.client.Suspect(err)
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
