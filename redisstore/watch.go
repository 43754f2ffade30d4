package redisstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisclient"
)

// watchPause is how often the trails that somebody waits for are looked at. One pipeline looks at all of them, whoever
// waits: waiting costs Redis nothing per waiter, and no connection is held.
// More than watchRound of them are looked at less often, so that Redis is asked for as many in a second.
const (
	watchPause = 200 * time.Millisecond
	watchRound = 1024
)

// pauseAfter returns how long to wait after a look at so many trails.
func pauseAfter(trails int) time.Duration {
	return watchPause * time.Duration(max(trails, watchRound)) / watchRound
}

// watch is what an instance waits for: agents' audit trails, each with its waiters.
type watch struct {
	mu      sync.Mutex
	trails  map[uuid.UUID]*trail
	looking bool // a goroutine looks at the trails; it ends when none is left, or the store is closed
}

type trail struct {
	waiters int
	newest  string        // id of its newest event when it was looked at last, "" before and for none
	moved   chan struct{} // closed when there is a newer one
	failed  error         // the looking has failed
}

// AwaitEvent returns nil when the agent may have an event after the one with the id, and ctx's error when that ended
// first. It checks no credential: read Events after it. Errors: ErrUnavailable, when the store was closed.
func (s *Store) AwaitEvent(ctx context.Context, agent uuid.UUID, after string) error {
	t := s.join(agent)
	defer s.watch.leave(agent, t)
	for {
		newest, moved, err := s.watch.state(t)
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

// join counts a waiter in. The first of all starts the looking.
func (s *Store) join(agent uuid.UUID) *trail {
	w := &s.watch
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
	if !w.looking {
		w.looking = true
		go s.lookAtTrails()
	}
	return t
}

func (w *watch) leave(agent uuid.UUID, t *trail) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.waiters--; t.waiters == 0 && w.trails[agent] == t {
		delete(w.trails, agent)
	}
}

func (w *watch) state(t *trail) (newest string, moved <-chan struct{}, failed error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.newest, t.moved, t.failed
}

// fail wakes all waiters with an error. Whoever comes next starts the looking again.
func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = false
	for _, t := range w.trails {
		t.failed = err
		close(t.moved)
	}
	clear(w.trails)
}

// lookAtTrails wakes waiters until there are none.
func (s *Store) lookAtTrails() {
	defer redisclient.RecoverTo(s.watch.fail)
	for {
		agents := s.watch.watched()
		if len(agents) == 0 {
			return
		}
		s.lookAt(agents)
		select {
		case <-s.closed:
			return
		case <-time.After(pauseAfter(len(agents))):
		}
	}
}

// watched returns whom somebody waits for; when there is nobody, whoever comes next starts the looking again.
func (w *watch) watched() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = len(w.trails) > 0
	return slices.Collect(maps.Keys(w.trails))
}

// lookAt reads the newest id of each trail, in one pipeline per server. What cannot be read now is read the next time.
func (s *Store) lookAt(agents []uuid.UUID) {
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
		case len(found) == 0: // Redis has lost what it had
			s.watch.saw(agent, "")
		default:
			s.watch.saw(agent, found[0].ID)
		}
	}
}

// saw wakes the waiters of a trail that has moved on.
func (w *watch) saw(agent uuid.UUID, newest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trails[agent]; t != nil && t.newest != newest {
		t.newest = newest
		close(t.moved)
		t.moved = make(chan struct{})
	}
}
