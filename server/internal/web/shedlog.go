package web

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// shedLog logs shed calls: there may be tens of thousands in a second, so a second after the first one a single line
// reports their number.
type shedLog struct {
	calls atomic.Int64
	due   atomic.Bool // a line is scheduled

	mu    sync.Mutex
	timer *time.Timer
	cause string // of the first call
}

const shedLogInterval = time.Second

func (t *shedLog) add(log *slog.Logger, err error) {
	t.calls.Add(1)
	if t.due.Load() || !t.due.CompareAndSwap(false, true) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cause = err.Error()
	t.timer = time.AfterFunc(shedLogInterval, func() { t.write(log) })
}

// write reports the calls since the last line. It allows the next line to be scheduled before it reads the count, so that a
// call added meanwhile is in one of the two.
func (t *shedLog) write(log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due.Store(false)
	if calls := t.calls.Swap(0); calls > 0 {
		log.Warn("calls shed", "code", "unavailable", "calls", calls, "cause", t.cause)
	}
}

// Flush writes the scheduled line at once.
func (t *shedLog) Flush(log *slog.Logger) {
	t.mu.Lock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.write(log)
}
