package kernel

import (
	"sync"
	"time"
)

const (
	// hurryPause is the least time between two readings of Redis's memory.
	hurryPause  = 20 * time.Millisecond
	syncAtOnce  = 256 // accounts in each round; the others wait for the next
	syncWorkers = 8
	// FinishTime is how long a closing store sends its last usage to Redis.
	FinishTime = 300 * time.Millisecond
	// publishPause is the least time between two updates of one organization in the index of holdings.
	publishPause = time.Second
)

// syncing is the queue of accounts to sync with Redis. A goroutine runs while the queue is not empty.
type syncing struct {
	Mu      sync.Mutex
	waiting []*account
	Running bool
	Closed  bool
	start   func() // the goroutine
	hurried chan struct{}
	ended   sync.WaitGroup
}

// enqueue adds an account to the queue, and starts the goroutine if none runs.
func (y *syncing) enqueue(a *account) {
	a.Mu.Lock()
	queued := a.queued
	a.queued = true
	a.Mu.Unlock()
	if queued {
		return
	}
	y.Mu.Lock()
	defer y.Mu.Unlock()
	y.waiting = append(y.waiting, a)
	if !y.Running && !y.Closed {
		y.Running = true
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
	y.Mu.Lock()
	defer y.Mu.Unlock()
	round := y.waiting[:min(len(y.waiting), syncAtOnce)]
	y.waiting = y.waiting[len(round):]
	if len(y.waiting) == 0 {
		y.waiting = nil
	}
	if len(round) == 0 {
		y.Running = false
	}
	return round
}

// stopped lets the next enqueue start a new goroutine.
func (y *syncing) stopped() {
	y.Mu.Lock()
	defer y.Mu.Unlock()
	y.Running = false
}

// finish stops the goroutine. Usage that it cannot send within FinishTime is lost; see decision 36.
func (y *syncing) finish() {
	y.Mu.Lock()
	y.Closed = true
	y.Mu.Unlock()
	y.ended.Wait()
}
