package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// waits bounds how often a charge waits for an operation. Others may use up what each brings. Then it goes to the session.
const waits = 3

// chargeSlowly charges what the current grant does not cover.
func (l *Lease) chargeSlowly(ctx context.Context, c Charge) error {
	for range waits {
		done, changed, err := l.tryGrants(c)
		if done {
			return err
		}
		if changed == nil {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("remit: waiting for a lease: %w", ctx.Err()) // it was not sent
		}
	}
	return l.chargeSession(ctx, c)
}

// tryGrants charges the grants at hand. If they do not cover the charge and a grant may come that does, it returns a channel
// that is closed when an operation has ended.
func (l *Lease) tryGrants(c Charge) (done bool, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true, nil, ErrLeaseClosed
	}
	if !c.isLeasable() {
		return false, nil, nil
	}
	slot, known := l.slotOf(c.ActionType)
	if !known {
		return false, nil, nil
	}
	need, now := amount{max(c.Count, 1), c.Value}, l.now()
	if l.chargeGrants(need, slot, now) {
		return true, nil, nil
	}
	if !l.mayGrant(need, now) {
		return false, nil, nil
	}
	l.demand, l.due, l.active.at = l.demand.most(need), true, now
	l.signal()
	return false, l.changed, nil
}

// chargeGrants charges the current grant or else the one after it. Called with mu held.
func (l *Lease) chargeGrants(need amount, slot int, now time.Duration) bool {
	l.dropExpired(now)
	for g := l.current.Load(); g != nil; g = l.current.Load() {
		if left, ok := g.charge(l.base, pack(need), slot); ok {
			l.due = l.due || g.isLow(left) && l.standby == nil && !g.nudged.Swap(true)
			if l.due {
				l.signal()
			}
			return true
		}
		if l.standby == nil || !l.standby.remaining().covers(need) && !l.mayGrant(need, now) {
			return false
		}
		l.rotate(now)
	}
	return false
}

// mayGrant reports whether a grant that covers need may be had now. Called with mu held.
func (l *Lease) mayGrant(need amount, now time.Duration) bool {
	if l.exclusive > 0 || now < max(l.retryAt, l.grantAt) {
		return false
	}
	_, ok := l.size(need, now)
	return ok
}

// chargeSession charges the session. A refusal may be owing to what this lease holds. Then it settles everything and charges
// the session once more, while it holds nothing.
// Only what is missing then is asked for.
func (l *Lease) chargeSession(ctx context.Context, c Charge) error {
	l.mu.Lock()
	epoch := l.epoch
	l.mu.Unlock()
	err := l.send(ctx, c, c.IdempotencyKey)
	if l.mayBeOwing(err, c, epoch) {
		err = l.sendAlone(ctx, c)
	}
	if c.OnLimit == Ask {
		return c.asking(l.session, func(key string) error { return l.send(ctx, c, key) }).resolve(ctx, err)
	}
	return err
}

// sendAlone charges the session while this lease holds nothing of it.
func (l *Lease) sendAlone(ctx context.Context, c Charge) error {
	defer l.holdNothing(ctx)()
	return l.send(ctx, c, c.IdempotencyKey)
}

// send charges the session and learns what remains of it.
func (l *Lease) send(ctx context.Context, c Charge, key string) error {
	now := l.now()
	usage, err := l.session.charge(ctx, c, key)
	var limit *LimitReached
	if err == nil || errors.As(err, &limit) {
		if err != nil {
			usage = limit.Usage
		}
		l.mu.Lock()
		l.budget.see(amount{usage.RemainingActions, usage.RemainingValue}, now)
		l.mu.Unlock()
	}
	return err
}

// mayBeOwing reports whether err is a refusal that may be owing to what this lease holds, or held since epoch. What is too
// little for this charge may be what another lease lacks, so it goes back in any case. With the caller's own key the first
// answer is final.
func (l *Lease) mayBeOwing(err error, c Charge, epoch int) bool {
	var limit *LimitReached
	if !errors.As(err, &limit) || c.IdempotencyKey != "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch != epoch || l.holds()
}

// holds reports whether this lease holds anything of the session. Called with mu held.
func (l *Lease) holds() bool {
	if l.pending != nil && !l.pending.asks.isZero() {
		return true
	}
	for _, g := range append([]*grant{l.current.Load(), l.standby}, l.frozen...) {
		if g != nil && !g.remaining().isZero() {
			return true
		}
	}
	return false
}

// holdNothing settles everything, and keeps the lease from fetching grants until the returned function is called. It gives up
// when a settlement fails or the ctx ends: then the session decides with what is still held.
func (l *Lease) holdNothing(ctx context.Context) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exclusive++
	l.retryAt = 0 // the session has just answered
	l.freezeAll()
	for failures := l.failures; len(l.frozen) > 0 || l.pending != nil; {
		if l.failures > failures || l.closed {
			break
		}
		l.signal()
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			break
		}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.exclusive--
	}
}
