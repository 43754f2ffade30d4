package redisstore

import (
	"sync"
	"time"
)

const (
	// hurryPause is the least time between two looks at the memory of Redis.
	hurryPause  = 20 * time.Millisecond
	syncAtOnce  = 256 // accounts in each round; the others wait for the next
	syncWorkers = 8
	// finishTime is what a store that is closed has to tell Redis the last.
	finishTime = 300 * time.Millisecond
	// publishPause is how often the holdings of all organizations learn of one.
	publishPause = time.Second
)

// syncing is who is to be synced with Redis. A goroutine does it while there is anybody.
type syncing struct {
	mu      sync.Mutex
	waiting []*account
	running bool
	closed  bool
	start   func() // the goroutine
	hurried chan struct{}
	ended   sync.WaitGroup
}

// enqueue has an account synced in the next round.
func (y *syncing) enqueue(a *account) {
	a.mu.Lock()
	queued := a.queued
	a.queued = true
	a.mu.Unlock()
	if queued {
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.waiting = append(y.waiting, a)
	if !y.running && !y.closed {
		y.running = true
		y.ended.Add(1)
		go y.start()
	}
}

// hurry has the next round begin soon.
func (y *syncing) hurry() {
	select {
	case y.hurried <- struct{}{}:
	default:
	}
}

// take returns the accounts of a round; none when there was nothing to do, and the goroutine is to end.
func (y *syncing) take() []*account {
	y.mu.Lock()
	defer y.mu.Unlock()
	round := y.waiting[:min(len(y.waiting), syncAtOnce)]
	y.waiting = y.waiting[len(round):]
	if len(y.waiting) == 0 {
		y.waiting = nil
	}
	if len(round) == 0 {
		y.running = false
	}
	return round
}

// stopped lets the next want start anew.
func (y *syncing) stopped() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.running = false
}

// finish stops the goroutine. What it could not tell Redis in finishTime is not counted; see decision 36.
func (y *syncing) finish() {
	y.mu.Lock()
	y.closed = true
	y.mu.Unlock()
	y.ended.Wait()
}
