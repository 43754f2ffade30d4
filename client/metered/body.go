package metered

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"remit/client/wire"
)

// body is the body of an answer. It reads what passes through it, and settles the call before the bytes pass that complete it.
type body struct {
	io.ReadCloser
	settlement *settlement
	stop       func() bool // ends the watch on the call's context

	mu       sync.Mutex
	meter    *wire.Meter
	rest     []byte    // what has passed the meter and was not read yet
	err      error     // what comes after rest
	readers  int       // reads that wait
	moved    time.Time // when the answer began, or the last read ended
	timer    *time.Timer
	settled  bool
	missing  error // what a reader gets instead of io.EOF
	reported bool  // of missing
}

func newBody(ctx context.Context, answer *http.Response, s *settlement) *body {
	b := &body{ReadCloser: answer.Body, settlement: s, meter: s.call.Meter(answer.Header), moved: time.Now()}
	b.mu.Lock() // the context may have ended, and its function needs all of b
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(s.untilExtension(), b.check)
	b.stop = context.AfterFunc(ctx, func() { b.interrupt(false) })
	return b
}

func (b *body) Read(p []byte) (int, error) {
	for {
		if n, err := b.passed(p); n > 0 || err != nil {
			return n, err
		}
		if n, err := b.read(p); n == 0 && err == nil {
			return 0, nil
		}
	}
}

// passed reads what has passed the meter.
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

// read reads what comes, settles when that completes the answer, and keeps what passes.
func (b *body) read(p []byte) (int, error) {
	b.mu.Lock()
	b.readers++
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers--
	b.moved = time.Now()
	b.rest = append(b.rest[:0], b.meter.Next(p[:n])...)
	if err != nil {
		b.rest = append(b.rest, b.meter.End(err == io.EOF)...)
	}
	if err != nil || b.meter.Ended() {
		b.end()
	}
	if b.err = err; err == io.EOF && b.missing != nil {
		b.err = b.missing
	}
	return n, err
}

// Close settles the call if the answer was not read to its end.
func (b *body) Close() error {
	b.mu.Lock()
	b.end()
	b.tell()
	b.stop()
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
		b.stop()
		b.settlement.commit(b.settlement.hold)
		return
	}
	b.end()
	b.tell()
}

func (b *body) finish() {
	b.settled = true
	b.timer.Stop()
}

// end settles the call by what was read of its answer: once. It is called with the lock.
func (b *body) end() {
	if b.settled {
		return
	}
	b.finish()
	s, a := b.settlement, b.meter.Answer()
	switch {
	case b.meter.Streamed() && (a.Failed || !a.Complete):
		s.commitSoFar(b.meter)
	case a.Known: // a reader may close after the last brace
		s.commitUsage(b.meter)
	case b.meter.Streamed():
		b.miss("its stream has no usage that can be read")
	case a.Complete && !b.meter.IsTooLong():
		b.miss("its answer has no usage that can be read")
	default:
		s.commit(s.hold)
	}
	if b.missing == nil { // otherwise its reader may go without having seen it
		b.stop()
	}
}

// miss settles a complete answer that does not say what it used: the hold is the most that it can have used.
func (b *body) miss(reason string) {
	s := b.settlement
	b.missing = &UsageMissing{Model: s.call.Model, Reason: reason + ", so it costs what was held, " + s.hold.String() + " USD"}
	s.commit(s.hold)
}
