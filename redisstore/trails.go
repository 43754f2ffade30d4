package redisstore

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// pollPause is the time between two polls of the trails that have waiters. One pipeline polls all trails, so more waiters of
// one trail cost Redis nothing and hold no connection. More than pollRound trails are polled less often, so that the number
// of commands per second stays bounded.
const (
	pollPause = 100 * time.Millisecond
	pollRound = 512
)

// pauseAfter returns how long to wait after a poll of so many trails.
func pauseAfter(trails int) time.Duration {
	return pollPause * time.Duration(max(trails, pollRound)) / pollRound
}

// subscriptions are the agents' audit trails that requests of this instance wait for.
type subscriptions struct {
	mu      sync.Mutex
	trails  map[uuid.UUID]*trail
	polling bool // a goroutine polls the trails; it ends when there is none, or the store is closed
}

type trail struct {
	waiters int
	newest  string        // id of its newest event at the last poll, "" before and for none
	moved   chan struct{} // closed when there is a newer event
	failed  error         // the polling has failed
}

func (w *subscriptions) leave(agent uuid.UUID, t *trail) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.waiters--; t.waiters == 0 && w.trails[agent] == t {
		delete(w.trails, agent)
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

// agents returns the agents whose trails have waiters. If there are none, the next waiter starts the polling again.
func (w *subscriptions) agents() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = len(w.trails) > 0
	return slices.Collect(maps.Keys(w.trails))
}

// notify wakes the waiters of a trail if it has a newer event.
func (w *subscriptions) notify(agent uuid.UUID, newest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trails[agent]; t != nil && t.newest != newest {
		t.newest = newest
		close(t.moved)
		t.moved = make(chan struct{})
	}
}
