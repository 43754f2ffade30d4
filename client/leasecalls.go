package client

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// leaseCallLimit bounds one operation with its attempts. Charges may wait for it.
	leaseCallLimit = 5 * time.Second
	// An operation that failed is sent again after a pause that doubles, between these.
	shortestRetry, longestRetry = time.Second, 30 * time.Second
	// refusedPause is how long no grant is asked for after one was refused. Charges go to the session.
	refusedPause = time.Second
	// repeatLease is how long an operation in doubt is repeated: as long as the service keeps the outcome of a grant.
	repeatLease = 24 * time.Hour
)

// open reads the session and fetches the first grant.
func (l *Lease) open(ctx context.Context) error {
	info, err := l.session.Get(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.budget.see(info.remainder(), l.now())
	ask := amount{actions: min(max(l.budget.left.actions/share, 1), firstActions)}
	l.pending = l.grant(ask)
	l.mu.Unlock()
	return l.perform(ctx, l.pending)
}

// giveBack settles a first grant that may have been given: its response was lost.
func (l *Lease) giveBack() {
	defer l.cancel()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.settleAll(l.calling) // the caller has got the error
}

// readBudget reads the session if a grant is due and what remained when it was last seen no longer counts.
func (l *Lease) readBudget() {
	l.mu.Lock()
	now := l.now()
	ask, _ := l.size(l.demand, now)
	stale := l.wantsGrant(now) && now >= l.retryAt && l.pending == nil && l.budget.isStale(ask, now)
	l.mu.Unlock()
	if !stale {
		return
	}
	ctx, cancel := context.WithTimeout(l.calling, leaseCallLimit)
	defer cancel()
	info, err := l.session.Get(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fail()
		l.announce()
		return
	}
	l.budget.see(info.remainder(), now)
}

// wantsGrant reports whether a grant is due. Called with mu held.
func (l *Lease) wantsGrant(now time.Duration) bool {
	return l.due && l.standby == nil && l.exclusive == 0 && !l.closed && now >= l.grantAt
}

// next returns the operation to send now; nil: none. Called with mu held.
func (l *Lease) next(now time.Duration) *operation {
	if now < l.retryAt && !l.closed {
		return nil
	}
	if l.pending != nil {
		return l.pending
	}
	var ask amount
	if l.wantsGrant(now) {
		if size, ok := l.size(l.demand, now); ok {
			ask = size
		}
	}
	switch {
	case len(l.frozen) > 0:
		l.pending = l.settlement(l.frozen[0], ask)
	case !ask.isZero():
		l.pending = l.grant(ask)
	}
	return l.pending
}

// perform sends an operation, and records its outcome.
func (l *Lease) perform(ctx context.Context, op *operation) error {
	ctx, cancel := context.WithTimeout(ctx, leaseCallLimit)
	defer cancel()
	var answer operationAnswer
	err := l.session.caller.do(ctx, op.call, &answer)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.announce()
	if err == nil || isFinal(err) || l.now()-op.begun > repeatLease {
		l.finish(op, &answer, err)
		return err
	}
	l.fail()
	op.doubt = op.doubt || errors.Is(err, ErrOutcomeUnknown)
	if !op.doubt { // it certainly had no effect: the next one may be another
		l.pending = nil
	}
	return err
}

// isFinal reports whether err is the service's own refusal, which will stay the same.
func isFinal(err error) bool {
	var p *Problem
	return errors.As(err, &p) && resolvesDoubt(p) && !p.Is(ErrOrganizationSuspended)
}

// fail notes that the service failed, and postpones the next operation. Called with mu held.
func (l *Lease) fail() {
	l.retryAt = l.now() + min(shortestRetry<<min(l.failures, 5), longestRetry)
	l.failures++
	l.due, l.demand = false, amount{}
}

// finish records the outcome of an operation that was answered. Called with mu held.
func (l *Lease) finish(op *operation, answer *operationAnswer, err error) {
	l.pending, l.failures = nil, 0
	l.epoch++
	made := &answer.leaseAnswer
	if op.settles != nil {
		made = answer.Renewed
		l.frozen = slices.DeleteFunc(l.frozen, func(g *grant) bool { return g == op.settles })
		switch {
		case err == nil:
			l.budget.add(op.settles.remaining())
		case op.doubt && errors.Is(err, ErrNotFound): // it was settled more than an hour ago, and the service has forgotten it
		case l.lost == nil:
			l.lost = err
		}
	}
	if op.asks.isZero() {
		return
	}
	l.due, l.demand = false, amount{}
	if err != nil || made == nil || made.ID == "" {
		l.grantAt = l.now() + refusedPause
		return
	}
	l.receive(l.newGrant(made, op))
}

// receive takes a grant into use. Called with mu held.
func (l *Lease) receive(g *grant) {
	l.budget.take(g.granted)
	now := l.now()
	switch {
	case l.closed || l.exclusive > 0 || now >= g.until:
		l.freeze(g)
	case l.current.Load() == nil:
		g.since, l.opened = now, now
		l.current.Store(g)
	default:
		l.standby = g
	}
}

// settleAll sends what is to be sent after Close, each operation once. The first error that leaves something unsettled ends it.
func (l *Lease) settleAll(ctx context.Context) error {
	for {
		l.mu.Lock()
		op := l.next(l.now())
		lost := l.lost
		l.mu.Unlock()
		if op == nil {
			return lost
		}
		if err := l.perform(ctx, op); err != nil && !isFinal(err) {
			return err
		}
	}
}
