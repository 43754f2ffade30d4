package redisstore

import (
	"sync"
	"time"
)

const (
	// hurryPause is the least time between two readings of Redis's memory.
	hurryPause  = 20 * time.Millisecond
	syncAtOnce  = 256 // accounts in each round; the others wait for the next
	syncWorkers = 8
	// finishTime is how long a closing store sends its last usage to Redis.
	finishTime = 300 * time.Millisecond
	// publishPause is the least time between two updates of one organization in the index of holdings.
	publishPause = time.Second
)

// syncing is the queue of accounts to sync with Redis. A goroutine runs while the queue is not empty.
type syncing struct {
	mu      sync.Mutex
	waiting []*account
	running bool
	closed  bool
	start   func() // the goroutine
	hurried chan struct{}
	ended   sync.WaitGroup
}

// enqueue adds an account to the queue, and starts the goroutine if none runs.
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

// hurry makes the goroutine read Redis's memory soon.
func (y *syncing) hurry() {
	select {
	case y.hurried <- struct{}{}:
	default:
	}
}

// take returns the accounts of a round. If there are none, the goroutine must end.
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

// stopped lets the next enqueue start a new goroutine.
func (y *syncing) stopped() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.running = false
}

// finish stops the goroutine. Usage that it cannot send within finishTime is lost; see decision 36.
func (y *syncing) finish() {
	y.mu.Lock()
	y.closed = true
	y.mu.Unlock()
	y.ended.Wait()
}
