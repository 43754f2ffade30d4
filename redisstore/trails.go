package redisstore

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// watchPause is how often the trails that have waiters are polled. One pipeline polls all of them: waiting costs Redis nothing
// per waiter, and no connection is held.
// More than watchRound of them are polled less often, so that Redis is asked for as many in a second.
const (
	watchPause = 200 * time.Millisecond
	watchRound = 1024
)

// pauseAfter returns how long to wait after polling so many trails.
func pauseAfter(trails int) time.Duration {
	return watchPause * time.Duration(max(trails, watchRound)) / watchRound
}

// watch polls agents' audit trails, each with its waiters.
type watch struct {
	mu      sync.Mutex
	trails  map[uuid.UUID]*trail
	polling bool // a goroutine polls the trails; it ends when none is left, or the store is closed
}

type trail struct {
	waiters int
	newest  string        // id of its newest event when it was polled last, "" before and for none
	moved   chan struct{} // closed when there is a newer one
	failed  error         // the polling has failed
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

// fail wakes all waiters with an error. The next waiter starts the polling again.
func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = false
	for _, t := range w.trails {
		t.failed = err
		close(t.moved)
	}
	clear(w.trails)
}

// watched returns the agents that have waiters. When there are none, the polling ends until the next waiter comes.
func (w *watch) watched() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = len(w.trails) > 0
	return slices.Collect(maps.Keys(w.trails))
}

// observed wakes the waiters of a trail that has moved on.
func (w *watch) observed(agent uuid.UUID, newest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trails[agent]; t != nil && t.newest != newest {
		t.newest = newest
		close(t.moved)
		t.moved = make(chan struct{})
	}
}
