package main

import (
	"context"
	"math"
	"math/bits"
	"sort"
	"sync"
	"time"
)

// pacer hands out the numbered starts of a run, each with the moment it is due. Workers pull from it, so nothing
// queues: when all workers are busy the next start waits, and its lateness shows because the due moment does not move.
// Safe for use by many workers.
type pacer struct {
	start time.Time
	count int64         // how many starts there are, at least 1
	span  time.Duration // over which they are spread evenly; 0: each is due as soon as somebody asks
	until time.Time     // no start is handed out after this moment; zero: no such moment

	// warp moves a moment of the even schedule, counted from its start, to where it belongs in another one of the same
	// span and order. Nil: it stays.
	warp func(offset, span time.Duration) time.Duration

	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration)

	turn  sync.Mutex // of the one worker that waits for the next start
	taken int64      // starts so far; guarded by turn
}

// newPacer spreads count starts over span from now on, and gives up on the rest after patience (0: never).
func newPacer(count int64, span, patience time.Duration) *pacer {
	p := &pacer{start: time.Now(), count: count, span: span, now: time.Now, sleep: sleepExactly}
	if patience > 0 {
		p.until = p.start.Add(patience)
	}
	return p
}

// newActionPacer is the schedule of a run's actions. In open loop their number is fixed, and overrun is how long after
// its end a service that cannot keep up is waited for; in closed loop (rate 0) the time is fixed and the number open.
func newActionPacer(rate int, duration, overrun time.Duration) *pacer {
	if rate == 0 {
		return newPacer(math.MaxInt64, 0, duration)
	}
	count := int64(rate) * int64(duration) / int64(time.Second)
	return newPacer(max(count, 1), duration, duration+overrun)
}

// dueAt is the moment of start k: k/count of the span, in 128 bits, so that neither rounding nor overflow lets a long
// schedule drift.
func (p *pacer) dueAt(k int64) time.Time {
	hi, lo := bits.Mul64(uint64(k), uint64(p.span))
	offset, _ := bits.Div64(hi, lo, uint64(p.count))
	if p.warp != nil {
		return p.start.Add(p.warp(time.Duration(offset), p.span))
	}
	return p.start.Add(time.Duration(offset))
}

// dueBefore is how many starts of a schedule are due before t; 0 in closed loop, where none is due at a set time.
func (p *pacer) dueBefore(t time.Time) int64 {
	if p.span == 0 {
		return 0
	}
	return int64(sort.Search(int(p.count), func(k int) bool { return !p.dueAt(int64(k)).Before(t) }))
}

// next waits for the next start and returns its number and the moment it was due. It is over (false) when all starts
// are taken, time is up, or ctx is done.
func (p *pacer) next(ctx context.Context) (k int64, due time.Time, ok bool) {
	p.turn.Lock()
	defer p.turn.Unlock()
	now, k := p.now(), p.taken
	if ctx.Err() != nil || k >= p.count || (!p.until.IsZero() && now.After(p.until)) {
		return 0, time.Time{}, false
	}
	due = now
	if p.span > 0 {
		due = p.dueAt(k)
		p.sleep(ctx, due.Sub(now))
	}
	p.taken = k + 1
	return k, due, ctx.Err() == nil
}

// unsent is how many starts of a schedule were never taken. For when all workers are done.
func (p *pacer) unsent() int64 {
	if p.span == 0 {
		return 0
	}
	return p.count - p.taken
}

// drive runs do for every start of p on the given number of workers, and returns when all have finished. No more than
// that many calls of do are under way at once.
func drive(ctx context.Context, workers int, p *pacer, do func(k int64, due time.Time)) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				k, due, ok := p.next(ctx)
				if !ok {
					return
				}
				do(k, due)
			}
		})
	}
	group.Wait()
}
