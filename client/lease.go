package client

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// ErrLeaseClosed is returned by Lease.Charge after Close. Nothing was charged.
var ErrLeaseClosed = errors.New("remit: the lease is closed")

const (
	defaultLease = time.Minute

	maxCount      = 1000 // of one charge
	maxTypeLength = 200  // characters of an action type
)

// LeaseOptions are options of Session.Lease. The zero value works.
type LeaseOptions struct {
	// ExpiresIn is the longest time for which this process may spend without asking again, to the second, from one second to one
	// hour; 0: a minute. The service shortens it to what the session allows. After a crash, what the process held counts as
	// spent. After the session was ended or the agent revoked, the process may spend what it holds for this long.
	ExpiresIn time.Duration
}

// Lease is a part of a session's budget that this process spends without asking the service for each charge. Session.Lease
// returns one; share it between all goroutines, and close it:
//
//	lease, err := session.Lease(ctx, client.LeaseOptions{})
//	if err != nil {
//		return err
//	}
//	defer lease.Close(context.WithoutCancel(ctx))
//
// A lease holds grants of the service. Their size follows the pace of the charges, so that one lasts about a second, and the
// next is there before the current one is used up. No grant takes more than an eighth of what remains in the session, so that
// several processes can share one. After 5 seconds without a charge a lease holds nothing and sends nothing until the next.
//
// The session's limits hold whatever happens: a grant counts as spent from the moment that it is given. Close and each
// renewal report what was really spent and return the rest. What a process that crashes holds counts as spent. Let signals
// such as SIGTERM end the program by way of its deferred calls, for example with signal.NotifyContext.
type Lease struct {
	session *Session
	seconds int64     // to ask each grant for
	base    time.Time // zero of the lease's clock, which is monotonic

	current atomic.Pointer[grant]
	slots   atomic.Pointer[map[string]int] // of action types; never changed, only replaced

	wake    chan struct{}   // of one element: there is something to do
	stop    chan struct{}   // closed by Close
	ended   chan struct{}   // closed when run has returned
	calling context.Context // of the calls of run
	cancel  context.CancelFunc
	closing chan struct{} // of one element: who closes
	quit    sync.Once

	mu        sync.Mutex
	closed    bool
	standby   *grant        // takes over from the current one; nil: none
	frozen    []*grant      // to be settled, oldest first
	pending   *operation    // being sent, or to be sent again, because its outcome is unknown
	retryAt   time.Duration // no operation is sent before
	grantAt   time.Duration // no grant is asked for before
	failures  int           // of operations in a row
	exclusive int           // charges that wait for the session without any grant of this lease
	demand    amount        // the most that one of the waiting charges needs
	due       bool          // the next grant is to be fetched
	changed   chan struct{} // closed and replaced when an operation has ended
	epoch     int           // of operations that ended
	budget    budget
	pace      amount // what is charged in a second
	charged   amount // to grants that were frozen
	active    activity
	opened    time.Duration // when the lease came to hold something after it held nothing
	lost      error         // why a settlement was refused; nil: none was
}

// Lease opens a lease, and fetches a first grant of at most 16 actions. The session must allow leases (SessionParams.MaxLease).
// Otherwise the error is *LimitReached with the limit max_lease_seconds; with 100 open leases it is max_open_leases. Other
// errors are those of Charge. After [ErrOutcomeUnknown] the first grant, if it was given, is settled in the background within
// seconds, or else counts as spent.
func (s *Session) Lease(ctx context.Context, o LeaseOptions) (*Lease, error) {
	l := newLease(s, o)
	if err := l.open(ctx); err != nil {
		go l.giveBack()
		return nil, err
	}
	go l.run()
	return l, nil
}

func newLease(s *Session, o LeaseOptions) *Lease {
	if o.ExpiresIn == 0 {
		o.ExpiresIn = defaultLease
	}
	l := &Lease{
		session: s, seconds: seconds(o.ExpiresIn), base: time.Now(), changed: make(chan struct{}),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}), closing: make(chan struct{}, 1),
	}
	l.calling, l.cancel = context.WithCancel(context.Background())
	l.slots.Store(&map[string]int{"": restSlot, restType: restSlot})
	return l
}

// Charge charges an action to the lease. Call it before the action. It is all or nothing. While the lease holds enough, it
// decides without a request and ignores the ctx. Otherwise it waits for the next grant; near the end of the budget it charges
// the session, so that the last charge that fits is granted, and its errors are those of Session.Charge. An outage shows only
// once the lease holds too little. A charge that succeeded was taken before the grant expired on this process's monotonic
// clock, also if the process was stopped meanwhile.
//
// A charge with a Scope or an IdempotencyKey always goes to the session, as does one that is large for the session. What
// leases hold counts as used in the Usage of *LimitReached.
//
// After Close it returns [ErrLeaseClosed].
func (l *Lease) Charge(ctx context.Context, c Charge) error {
	g, need := l.current.Load(), amount{max(c.Count, 1), c.Value}
	if g == nil || !c.isLeasable() {
		return l.chargeSlowly(ctx, c)
	}
	slot, known := (*l.slots.Load())[c.ActionType]
	if !known {
		return l.chargeSlowly(ctx, c)
	}
	left, ok := g.charge(l.base, pack(need), slot)
	if !ok {
		return l.chargeSlowly(ctx, c)
	}
	if g.isLow(left) && !g.nudged.Load() {
		l.nudge(g)
	}
	return nil
}

// isLeasable reports whether the charge may be taken from a grant. The service sees all others, and says what is wrong.
func (c *Charge) isLeasable() bool {
	return c.Scope == "" && c.IdempotencyKey == "" && c.Count >= 0 && c.Count <= maxCount && c.Value >= 0 && c.Value <= maxGrantValue
}

// nudge asks for the grant that follows g.
func (l *Lease) nudge(g *grant) {
	if g.nudged.Swap(true) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.Load() == g && l.standby == nil {
		l.due = true
		l.signal()
	}
}

// slotOf returns the slot of an action type and gives it one. It reports false for a type that the service refuses. Called
// with mu held.
func (l *Lease) slotOf(actionType string) (int, bool) {
	known := *l.slots.Load()
	if slot, ok := known[actionType]; ok {
		return slot, true
	}
	if !utf8.ValidString(actionType) || utf8.RuneCountInString(actionType) > maxTypeLength {
		return 0, false
	}
	if slots := len(known) - 1; slots <= namedTypes { // "" and restType share one
		more := maps.Clone(known)
		more[strings.Clone(actionType)] = slots
		l.slots.Store(&more)
		return slots, true
	}
	return restSlot, true
}

// now is the time on the lease's clock.
func (l *Lease) now() time.Duration { return time.Since(l.base) }

// signal wakes run.
func (l *Lease) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close settles the lease: it reports what was spent and returns the rest to the session. Call it when all charges are made;
// later ones return [ErrLeaseClosed]. After an error it may be called again. What is not settled counts as spent. Closing a
// closed lease has no effect.
func (l *Lease) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.freezeAll()
	l.mu.Unlock()
	l.quit.Do(func() { close(l.stop) })
	defer l.cancel()
	select {
	case <-l.ended:
	case <-ctx.Done():
		l.cancel()
		<-l.ended
	}
	select {
	case l.closing <- struct{}{}:
		defer func() { <-l.closing }()
		return l.settleAll(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}
