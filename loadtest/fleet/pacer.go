package fleet

import (
	"context"
	"math"
	"math/bits"
	"sort"
	"sync"
	"time"
)

// pacer hands out the numbered starts of a run, each with the time it is due. Workers pull from it, so nothing queues. When
// all workers are busy, the next start is late, and its latency shows that because the due time stays the same. It is safe
// for concurrent use.
type pacer struct {
	start time.Time
	count int64         // number of starts, at least 1
	span  time.Duration // time over which the starts are spread evenly; 0: each is due as soon as a worker is free
	until time.Time     // no start is handed out after this time; zero: no end

	// warp maps an offset of the even schedule to one of another schedule with the same span and order. Nil keeps the even
	// schedule.
	warp func(offset, span time.Duration) time.Duration

	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration)

	turn  sync.Mutex // held by the worker that waits for the next start
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

// newActionPacer returns the schedule of a run's actions. In open loop their number is fixed, and overrun is how much longer
// a run may take if the service cannot keep up. In closed loop (rate 0) the duration is fixed, and the number is not.
func newActionPacer(rate int, duration, overrun time.Duration) *pacer {
	if rate == 0 {
		return newPacer(math.MaxInt64, 0, duration)
	}
	count := int64(rate) * int64(duration) / int64(time.Second)
	return newPacer(max(count, 1), duration, duration+overrun)
}

// dueAt returns when start k is due: k/count of the span, in 128 bits, so that neither rounding nor overflow makes a long
// schedule drift.
func (p *pacer) dueAt(k int64) time.Time {
	hi, lo := bits.Mul64(uint64(k), uint64(p.span))
	offset, _ := bits.Div64(hi, lo, uint64(p.count))
	if p.warp != nil {
		return p.start.Add(p.warp(time.Duration(offset), p.span))
	}
	return p.start.Add(time.Duration(offset))
}

// dueBefore returns how many starts are due before t. It is 0 in closed loop, where no start has a set time.
func (p *pacer) dueBefore(t time.Time) int64 {
	if p.span == 0 {
		return 0
	}
	return int64(sort.Search(int(p.count), func(k int) bool { return !p.dueAt(int64(k)).Before(t) }))
}

// next waits for the next start, and returns its number and the time it was due. It returns false when all starts are taken,
// the time is up, or ctx is done.
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

// unsent returns how many starts were never taken. Call it after all workers have ended.
func (p *pacer) unsent() int64 {
	if p.span == 0 {
		return 0
	}
	return p.count - p.taken
}

// drive runs do for every start of p on the given number of workers, and returns when all have finished. At most that many
// calls of do are in flight.
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
