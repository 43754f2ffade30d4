package service

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// lineQueue writes lines in order, from its own goroutine, so that a slow reader of standard error blocks neither requests
// nor the stop. It drops and counts lines that do not fit.
type lineQueue struct {
	lines   chan queuedLine
	dropped atomic.Int64
	ended   chan struct{}

	mu     sync.RWMutex
	closed bool
}

type queuedLine struct {
	to   io.Writer
	text []byte
}

// Capacities in lines, some hundred kilobytes in all. The access log may fill only a part of the queue, because the other
// lines are fewer and report failures.
const (
	queuedLines    = 4096
	queuedRequests = 1024
)

// newLineQueue returns a queue that reports the number of dropped lines whenever it is empty again.
func newLineQueue(report func(dropped int64)) *lineQueue {
	q := &lineQueue{lines: make(chan queuedLine, queuedLines), ended: make(chan struct{})}
	go q.write(report)
	return q
}

// write returns when the queue is closed and all its lines are written.
func (q *lineQueue) write(report func(dropped int64)) {
	defer close(q.ended)
	reportDropped := func() {
		if dropped := q.dropped.Swap(0); dropped > 0 {
			report(dropped)
		}
	}
	for line := range q.lines {
		if _, err := line.to.Write(line.text); err != nil {
			q.dropped.Add(1)
		}
		if len(q.lines) == 0 {
			reportDropped()
		}
	}
	reportDropped()
}

// queuedWriter queues lines for one writer. It drops them while the queue holds room lines or more.
type queuedWriter struct {
	queue *lineQueue
	to    io.Writer
	room  int
}

// Write implements io.Writer for a log handler, which calls it once per line.
func (w queuedWriter) Write(line []byte) (int, error) {
	q := w.queue
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed || len(q.lines) >= w.room {
		q.dropped.Add(1)
		return len(line), nil
	}
	select {
	case q.lines <- queuedLine{w.to, bytes.Clone(line)}:
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

// end drops further lines, and waits at most timeout until the queued ones are written.
func (q *lineQueue) end(timeout time.Duration) {
	q.mu.Lock()
	q.closed = true
	close(q.lines)
	q.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-q.ended:
	case <-timer.C:
	}
}
