package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// lineQueue writes lines in their order, from a goroutine of its own. Who writes to it never waits: whoever reads our
// standard error may be slow or away, and what waited for it, be it a request or the stop, would be held up with it. What
// comes beyond its room is lost, and counted.
type lineQueue struct {
	lines chan queuedLine
	lost  atomic.Int64
	ended chan struct{}

	mu     sync.RWMutex
	closed bool
}

type queuedLine struct {
	to   io.Writer
	text []byte
}

// The room in the queue: some hundred kilobytes. Lines of the access log leave most of it to the others, which are fewer
// and say what goes wrong.
const (
	queuedLines    = 4096
	queuedRequests = 1024
)

// newLineQueue returns a queue that tells how many lines were lost whenever it has written all others.
func newLineQueue(tellLost func(lines int64)) *lineQueue {
	q := &lineQueue{lines: make(chan queuedLine, queuedLines), ended: make(chan struct{})}
	go q.write(tellLost)
	return q
}

// write ends when the queue has been ended and all its lines are written.
func (q *lineQueue) write(tellLost func(lines int64)) {
	defer close(q.ended)
	tell := func() {
		if lost := q.lost.Swap(0); lost > 0 {
			tellLost(lost)
		}
	}
	for line := range q.lines {
		if _, err := line.to.Write(line.text); err != nil {
			q.lost.Add(1)
		}
		if len(q.lines) == 0 {
			tell()
		}
	}
	tell()
}

// queuedWriter puts lines for one writer into a queue as long as fewer than room wait there.
type queuedWriter struct {
	queue *lineQueue
	to    io.Writer
	room  int
}

// Write implements io.Writer for a log handler, which calls it once for each line.
func (w queuedWriter) Write(line []byte) (int, error) {
	q := w.queue
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed || len(q.lines) >= w.room {
		q.lost.Add(1)
		return len(line), nil
	}
	select {
	case q.lines <- queuedLine{w.to, bytes.Clone(line)}:
	default:
		q.lost.Add(1)
	}
	return len(line), nil
}

// end takes no more lines, and waits at most so long until those that wait are written.
func (q *lineQueue) end(patience time.Duration) {
	q.mu.Lock()
	q.closed = true
	close(q.lines)
	q.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-q.ended:
	case <-timer.C:
	}
}
