package redisstore

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// watchPause is how often the trails with waiters are polled. One pipeline polls all of them, so a waiter costs Redis
// nothing and holds no connection. More than watchRound trails are polled less often, so that the polls per second stay the
// same.
const (
	watchPause = 200 * time.Millisecond
	watchRound = 1024
)

// pauseAfter returns how long to wait after a poll of so many trails.
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
	newest  string        // id of its newest event at the last poll, "" before and for none
	moved   chan struct{} // closed when there is a newer one
	failed  error         // the poll has failed
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

// watched returns the agents with waiters. When there are none, the next waiter starts the polling again.
func (w *watch) watched() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = len(w.trails) > 0
	return slices.Collect(maps.Keys(w.trails))
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
