package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// lineQueue writes lines in their order, from a goroutine of its own. Who writes to it never waits: whoever reads our
// standard error may be slow, and a request that waited for it would be slow too. What comes beyond its room is lost, and
// counted.
type lineQueue struct {
	lines chan []byte
	lost  atomic.Int64
	ended chan struct{}

	mu     sync.RWMutex
	closed bool
}

// queuedLines is how many lines wait at the most: some hundred kilobytes.
const queuedLines = 1024

func newLineQueue(w io.Writer) *lineQueue {
	q := &lineQueue{lines: make(chan []byte, queuedLines), ended: make(chan struct{})}
	go func() {
		defer close(q.ended)
		for line := range q.lines {
			if _, err := w.Write(line); err != nil {
				q.lost.Add(1)
			}
		}
	}()
	return q
}

// Write implements io.Writer for a log handler, which calls it once for each line.
func (q *lineQueue) Write(line []byte) (int, error) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		q.lost.Add(1)
		return len(line), nil
	}
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.lost.Add(1)
	}
	return len(line), nil
}

// end takes no more lines, waits at most so long until those that wait are written, and returns how many were lost.
func (q *lineQueue) end(patience time.Duration) (lost int64) {
	q.mu.Lock()
	q.closed = true
	close(q.lines)
	q.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-q.ended:
	case <-timer.C:
		q.lost.Add(int64(len(q.lines)))
	}
	return q.lost.Load()
}
