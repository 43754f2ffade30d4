package server

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// turnedAway counts the calls that found no place in the row for Redis. What can be tens of thousands in a second must
// cost little, in the log too: a second after the first of them one line tells how many there were.
type turnedAway struct {
	calls atomic.Int64
	due   atomic.Bool // the line is

	mu    sync.Mutex
	timer *time.Timer
	cause string // of the first
}

const tellEvery = time.Second

func (t *turnedAway) note(log *slog.Logger, err error) {
	t.calls.Add(1)
	if t.due.Load() || !t.due.CompareAndSwap(false, true) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cause = err.Error()
	t.timer = time.AfterFunc(tellEvery, func() { t.tell(log) })
}

// tell lets the next line be due before it reads the count: a call that is noted meanwhile is in one of the two.
func (t *turnedAway) tell(log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due.Store(false)
	if calls := t.calls.Swap(0); calls > 0 {
		log.Warn("calls turned away", "code", "unavailable", "calls", calls, "cause", t.cause)
	}
}

// end tells at once what is left to tell.
func (t *turnedAway) end(log *slog.Logger) {
	t.mu.Lock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.tell(log)
}
