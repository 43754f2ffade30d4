package client

import (
	"time"
)

const (
	// idleAfter is the time without a charge after which everything is settled.
	idleAfter = 5 * time.Second
	// excess is how many times more than the pace a grant may hold before it is exchanged for a smaller one, from the time
	// excessAfter on.
	excess, excessAfter = 8, 2 * time.Second
	// A grant is renewed when half of its time is over. The last part, 1/margin, is not used, because clocks differ in speed.
	margin = 20
	// The state of a lease is reviewed this often while it holds something, and at least four times in a grant's time.
	reviewEvery, shortestReview = time.Second, 10 * time.Millisecond
)

// activity is when a change of what was charged was last seen, or a charge began to wait.
type activity struct {
	charged amount
	at      time.Duration
}

// run does what is to do until Close. Only it sends operations.
func (l *Lease) run() {
	defer close(l.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !l.isStopped() {
		timer.Reset(l.step())
		select {
		case <-l.stop:
			return
		case <-l.wake:
		case <-timer.C:
		}
	}
}

func (l *Lease) isStopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// step sends the operation that is due, and returns how long there is nothing more to do.
func (l *Lease) step() time.Duration {
	l.readBudget()
	l.mu.Lock()
	now := l.now()
	l.review(now)
	op := l.next(now)
	pause := l.untilReview(now)
	if op == nil && l.due { // it is not worth a grant, or must wait
		l.due, l.demand = false, amount{}
		l.announce()
	}
	l.mu.Unlock()
	if op == nil {
		return pause
	}
	_ = l.perform(l.calling, op) // charges show it when they need the service
	return 0
}

// forever is a pause that only a signal ends.
const forever = 24 * time.Hour

// untilReview returns how long nothing is to be done unless a charge asks for it. Called with mu held.
func (l *Lease) untilReview(now time.Duration) time.Duration {
	pause := forever
	if l.pending != nil || len(l.frozen) > 0 {
		pause = max(l.retryAt-now, 0)
	}
	for _, g := range []*grant{l.current.Load(), l.standby} {
		if g != nil {
			pause = min(pause, max(min(reviewEvery, (g.until-g.begun)/4), shortestReview))
		}
	}
	return pause
}

// review settles what is idle or expired, and exchanges what is due. Called with mu held.
func (l *Lease) review(now time.Duration) {
	l.dropExpired(now)
	g := l.current.Load()
	if g == nil {
		return
	}
	if charged := l.charged.plus(g.used()); l.active.charged != charged {
		l.active = activity{charged, now}
	}
	switch {
	case now-max(l.active.at, l.opened) >= idleAfter:
		l.freezeAll()
	case !l.isDue(g, now):
	case l.standby != nil:
		l.rotate(now)
	default:
		l.due = true
	}
}

// isDue reports whether to replace the grant: half of its time is over, or it holds much more than is charged. Called with
// mu held.
func (l *Lease) isDue(g *grant, now time.Duration) bool {
	if now-g.begun >= (g.until-g.begun)/2 {
		return true
	}
	if now-g.since <= excessAfter || g.used().isZero() {
		return false
	}
	return !g.measure(now).times(excess).covers(g.remaining())
}

// dropExpired ends the grants that have expired. Called with mu held.
func (l *Lease) dropExpired(now time.Duration) {
	if l.standby != nil && now >= l.standby.until {
		l.freeze(l.standby)
		l.standby = nil
	}
	if g := l.current.Load(); g != nil && now >= g.until {
		l.rotate(now)
	}
}

// rotate ends the current grant, and lets the standby take over. Called with mu held.
func (l *Lease) rotate(now time.Duration) {
	old, next := l.current.Load(), l.standby
	if next != nil {
		next.since = now
	}
	l.standby = nil
	l.current.Store(next)
	if old != nil {
		l.freeze(old)
		if !old.used().isZero() {
			l.pace = old.measure(now)
		}
	}
	l.due = l.due || next != nil
	l.signal()
}

// freezeAll ends all grants. Charges that wait for one ask again. Called with mu held.
func (l *Lease) freezeAll() {
	for _, g := range []*grant{l.current.Swap(nil), l.standby} {
		if g != nil {
			l.freeze(g)
		}
	}
	l.standby, l.due, l.demand = nil, false, amount{}
	l.announce()
	l.signal()
}

// freeze ends a grant and leaves it to be settled. Called with mu held.
func (l *Lease) freeze(g *grant) {
	g.freeze()
	l.charged = l.charged.plus(g.used())
	l.frozen = append(l.frozen, g)
}

// announce wakes the charges that wait. Called with mu held.
func (l *Lease) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}
