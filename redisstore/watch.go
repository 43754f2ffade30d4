package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisclient"
)

// AwaitEvent waits until the agent may have an event after the one with the id, or until ctx ends, and then returns ctx's
// error. It checks no credential: call Events after it. Errors: ErrUnavailable, when the store was closed.
func (s *Store) AwaitEvent(ctx context.Context, agent uuid.UUID, after string) error {
	t := s.join(agent)
	defer s.subscriptions.leave(agent, t)
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

// join adds a waiter to the agent's trail. The first waiter of all starts the polling.
func (s *Store) join(agent uuid.UUID) *trail {
	w := &s.subscriptions
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trails == nil {
		w.trails = map[uuid.UUID]*trail{}
	}
	t := w.trails[agent]
	if t == nil {
		t = &trail{moved: make(chan struct{})}
		w.trails[agent] = t
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
		agents := s.subscriptions.agents()
		if len(agents) == 0 {
			return
		}
		s.readNewest(agents)
		select {
		case <-s.closed:
			return
		case <-time.After(pauseAfter(len(agents))):
		}
	}
}

// readNewest reads the newest id of each trail, in one pipeline per server. The next poll repeats reads that fail.
func (s *Store) readNewest(agents []uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	newest := make([]*redis.XMessageSliceCmd, len(agents))
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, agent := range agents {
			newest[i] = p.XRevRangeN(ctx, s.keys.events(agent), "+", "-", 1)
		}
		return nil
	})
	s.client.Suspect(err)
	for i, agent := range agents {
		switch found, err := newest[i].Result(); {
		case err != nil:
		case len(found) == 0: // Redis has lost its data
			s.subscriptions.notify(agent, "")
		default:
			s.subscriptions.notify(agent, found[0].ID)
		}
	}
}
