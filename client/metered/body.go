package metered

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"
)

// body is the body of an answer. It reads what passes through it, and settles the call at its end.
type body struct {
	io.ReadCloser
	settlement *settlement
	stop       func() bool // ends the watch on the call's context

	mu       sync.Mutex
	streamed bool
	whole    []byte // not streamed: what was read so far
	tooLong  bool   // to be kept whole
	events   events
	progress progress
	size     int64     // read so far, in bytes
	readers  int       // reads that wait
	moved    time.Time // when the answer began, or the last read ended
	timer    *time.Timer
	settled  bool
	missing  error // what a reader gets instead of io.EOF
	reported bool  // of missing

	filter *usageChunk // nil: all that comes passes
	rest   []byte      // what has passed the filter and was not read yet
	err    error       // what comes after rest
}

func newBody(ctx context.Context, answer *http.Response, s *settlement) *body {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // "" for none: not streamed
	b := &body{ReadCloser: answer.Body, settlement: s, streamed: kind == "text/event-stream", moved: time.Now()}
	b.mu.Lock() // the context may have ended, and its function needs all of b
	defer b.mu.Unlock()
	b.events = events{most: maxBody, dispatch: func(data []byte) { s.call.format.event(data, &b.progress) }}
	if b.streamed && s.call.hidesUsage && answer.Header.Get("Content-Encoding") == "" {
		b.filter = new(usageChunk)
	}
	b.timer = time.AfterFunc(s.untilExtension(), b.check)
	b.stop = context.AfterFunc(ctx, func() { b.interrupt(false) })
	return b
}

func (b *body) Read(p []byte) (int, error) {
	for {
		if n, err := b.passed(p); n > 0 || err != nil {
			return n, err
		}
		n, err := b.read(p)
		if b.filter == nil || n == 0 && err == nil {
			return n, err
		}
	}
}

// passed reads what has passed the filter.
func (b *body) passed(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		err = b.err
		b.reported = b.reported || err != nil && err == b.missing
	}
	return n, err
}

// read reads what comes, settles at its end, and gives it to the filter if there is one.
func (b *body) read(p []byte) (int, error) {
	b.mu.Lock()
	b.readers++
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers--
	b.moved = time.Now()
	b.observe(p[:n])
	switch {
	case err == io.EOF:
		b.end(true)
		if b.missing != nil {
			err = b.missing
		}
	case err != nil:
		b.end(false)
	}
	if b.filter != nil {
		b.rest, b.err = b.filter.next(p[:n], err != nil), err
		return n, err
	}
	b.reported = b.reported || b.missing != nil
	return n, err
}

// Close settles the call if the answer was not read to its end.
func (b *body) Close() error {
	b.mu.Lock()
	b.end(false)
	b.tell()
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

// tell reports a usage that is missing, unless the reader has seen it.
func (b *body) tell() {
	if b.missing != nil && !b.reported {
		b.reported = true
		b.settlement.transport.report(b.missing)
	}
}

func (b *body) observe(text []byte) {
	b.size += int64(len(text))
	switch {
	case b.settled:
	case b.streamed:
		b.events.write(text)
	case b.tooLong || len(b.whole)+len(text) > maxBody:
		b.whole, b.tooLong = nil, true
	default:
		b.whole = append(b.whole, text...)
	}
}

// check extends the hold of a body that is being read, and settles for one that is not.
func (b *body) check() {
	period := b.settlement.transport.period()
	b.mu.Lock()
	idle := b.readers == 0 && time.Since(b.moved) >= period
	if !b.settled && !idle {
		b.timer.Reset(period)
	}
	done := b.settled
	b.mu.Unlock()
	switch {
	case done:
	case idle:
		b.interrupt(true)
	default:
		b.extend()
	}
}

// extend extends the hold. That fails when the call is settled meanwhile.
func (b *body) extend() {
	err := b.settlement.extend(b.settlement.ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.settled {
		b.settlement.reported(err, "extend")
	}
}

// interrupt settles a call whose answer is no longer read. An abandoned one may have run to its end.
func (b *body) interrupt(abandoned bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if abandoned && !b.settled {
		b.finish()
		b.settlement.commit(b.settlement.hold)
		return
	}
	b.end(false)
	b.tell()
}

func (b *body) finish() {
	b.settled = true
	b.timer.Stop()
	b.stop()
}

// end settles the call by what was read of its answer: once. It is called with the lock.
func (b *body) end(all bool) {
	if b.settled {
		return
	}
	b.finish()
	s := b.settlement
	if b.streamed {
		if all {
			b.events.end()
		}
		b.endStream()
		return
	}
	a, has := s.call.format.whole(b.whole)
	switch {
	case has: // a reader may close after the last brace
		s.commitUsage(a)
	case !b.tooLong && (all || json.Valid(b.whole)):
		b.miss("its answer has no usage that can be read")
	default:
		s.commit(s.hold)
	}
	b.whole = nil
}

func (b *body) endStream() {
	s, p := b.settlement, b.progress
	switch {
	case p.failed || !p.ended:
		s.commitSoFar(p, b.size)
	case p.isKnown():
		s.commitUsage(p.answer)
	default:
		b.miss("its stream has no usage that can be read")
	}
}

// miss settles a complete answer that does not say what it used: the hold is the most that it can have used.
func (b *body) miss(reason string) {
	s := b.settlement
	b.missing = &UsageMissing{s.call.model, reason + ", so it costs what was held, " + s.hold.String() + " USD"}
	s.commit(s.hold)
}
