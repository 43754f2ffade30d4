package redisstore

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// pollPause is how often the trails that somebody waits for are looked at. One pipeline looks at all of them, whoever
// waits: waiting costs Redis nothing per waiter, and no connection is held.
// More than pollRound of them are looked at less often, so that Redis is asked for as many in a second.
const (
	pollPause = 200 * time.Millisecond
	pollRound = 1024
)

// pauseAfter returns how long to wait after a look at so many trails.
func pauseAfter(trails int) time.Duration {
	return pollPause * time.Duration(max(trails, pollRound)) / pollRound
}

// subscriptions are what an instance waits for: agents' audit trails, each with its waiters.
type subscriptions struct {
	mu      sync.Mutex
	trails  map[uuid.UUID]*trail
	polling bool // a goroutine looks at the trails; it ends when none is left, or the store is closed
}

type trail struct {
	waiters int
	newest  string        // id of its newest event when it was looked at last, "" before and for none
	moved   chan struct{} // closed when there is a newer one
	failed  error         // the looking has failed
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

// fail wakes all waiters with an error. Whoever comes next starts the looking again.
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

// agents returns whom somebody waits for; when there is nobody, whoever comes next starts the looking again.
func (w *subscriptions) agents() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = len(w.trails) > 0
	return slices.Collect(maps.Keys(w.trails))
}

// notify wakes the waiters of a trail that has moved on.
func (w *subscriptions) notify(agent uuid.UUID, newest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trails[agent]; t != nil && t.newest != newest {
		t.newest = newest
		close(t.moved)
		t.moved = make(chan struct{})
	}
}
