package records

import (
	"maps"
	"slices"
	"sync"
	"time"
)

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
