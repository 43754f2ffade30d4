package client

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"remit/money"
)

const (
	// leaseCallLimit bounds one operation with its attempts. Charges may wait for it.
	leaseCallLimit = 5 * time.Second
	// An operation that failed is sent again after a pause that doubles, between these.
	shortestRetry, longestRetry = time.Second, 30 * time.Second
	// refusedPause is how long no grant is asked for after one was refused. Charges go to the session.
	refusedPause = time.Second
	// repeatLease is how long an operation in doubt is repeated: as long as the service keeps the outcome under its key.
	repeatLease = 24 * time.Hour
)

// operation is a call that grants a lease, settles one, or does both. It stays the same however often it is sent.
type operation struct {
	call    call
	settles *grant        // nil: none
	asks    amount        // nothing: no lease
	begun   time.Duration // before it was first sent
	doubt   bool          // whether it may have taken effect
}

// grantBody asks for a lease, on the wire.
type grantBody struct {
	MaxActions int64          `json:"max_actions,omitzero"`
	MaxValue   money.MicroUSD `json:"max_value_usd,omitzero"`
	ExpiresIn  int64          `json:"expires_in_seconds"`
	Partial    bool           `json:"partial"`
}

// typeUsage is what was charged under one action type, on the wire.
type typeUsage struct {
	ActionCount int64          `json:"action_count"`
	Value       money.MicroUSD `json:"value_usd"`
}

// settleBody settles a lease, on the wire.
type settleBody struct {
	ActionCount  int64                `json:"action_count"`
	ValueUsed    money.MicroUSD       `json:"value_used_usd"`
	ByActionType map[string]typeUsage `json:"by_action_type,omitzero"`
	Renew        *grantBody           `json:"renew,omitzero"`
}

// leaseAnswer is a lease as the service returns it.
type leaseAnswer struct {
	ID         string         `json:"id"`
	MaxActions int64          `json:"max_actions"`
	MaxValue   money.MicroUSD `json:"max_value_usd"`
	CreatedAt  time.Time      `json:"created_at"`
	ExpiresAt  time.Time      `json:"expires_at"`
}

// operationAnswer is the response to a grant and to a settlement.
type operationAnswer struct {
	leaseAnswer              // of a grant
	Renewed     *leaseAnswer `json:"renewed"` // of a settlement
}

// granted returns the lease that was granted; nil: none was.
func (a *operationAnswer) granted(op *operation) *leaseAnswer {
	if op.settles != nil {
		return a.Renewed
	}
	return &a.leaseAnswer
}

func (l *Lease) grantBody(ask amount) *grantBody {
	return &grantBody{ask.actions, ask.value, l.seconds, true}
}

// keyedLease returns a POST that is safe to repeat. It has a key in any case, so that a lost response loses no budget.
func keyedLease(path string, body any) call {
	return call{method: "POST", path: path, body: body, semantics: idempotent, key: randomKey()}
}

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

func (l *Lease) grant(ask amount) *operation {
	return &operation{call: keyedLease(sessionPath(l.session.id)+"/leases", l.grantBody(ask)), asks: ask, begun: l.now()}
}

// settlement returns the operation that settles g and asks for a lease of the size ask.
func (l *Lease) settlement(g *grant, ask amount) *operation {
	u := g.usage()
	body := settleBody{u.all.actions, u.all.value, l.byActionType(u), nil}
	if !ask.isZero() {
		body.Renew = l.grantBody(ask)
	}
	path := "/v1/leases/" + url.PathEscape(g.id) + "/settle"
	return &operation{call: keyedLease(path, body), settles: g, asks: ask, begun: l.now()}
}

// byActionType leaves out the types without charges. It is nil when no charge had a type.
func (l *Lease) byActionType(u usage) map[string]typeUsage {
	types := map[string]typeUsage{}
	for name, slot := range *l.slots.Load() {
		if name != "" && u.bySlot[slot].actions > 0 {
			types[name] = typeUsage{u.bySlot[slot].actions, u.bySlot[slot].value}
		}
	}
	if len(types) == 0 {
		return nil
	}
	return types
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

// perform sends an operation, and books its outcome.
func (l *Lease) perform(ctx context.Context, op *operation) error {
	ctx, cancel := context.WithTimeout(ctx, leaseCallLimit)
	defer cancel()
	var answer operationAnswer
	err := l.session.caller.do(ctx, op.call, &answer)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.announce()
	op.doubt = errors.Is(err, ErrOutcomeUnknown) || op.doubt && err != nil && !isFinal(err)
	if err != nil && !isFinal(err) && l.now()-op.begun < repeatLease {
		l.fail()
		if !op.doubt {
			l.pending = nil
		}
		return err
	}
	l.finish(op, &answer, err)
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

// finish books the outcome of an operation that was answered. Called with mu held.
func (l *Lease) finish(op *operation, answer *operationAnswer, err error) {
	l.pending, l.failures = nil, 0
	l.epoch++
	if op.settles != nil {
		l.frozen = slices.DeleteFunc(l.frozen, func(g *grant) bool { return g == op.settles })
		if err == nil {
			l.budget.add(op.settles.remaining())
		} else if l.lost == nil {
			l.lost = err
		}
	}
	if op.asks.isZero() {
		return
	}
	l.due, l.demand = false, amount{}
	made := answer.granted(op)
	if err != nil || made == nil || made.ID == "" {
		l.grantAt = l.now() + refusedPause
		return
	}
	l.receive(l.newGrant(made, op))
}

// newGrant is a lease as this process spends it. Its time counts from before the request, so that it ends here first.
func (l *Lease) newGrant(a *leaseAnswer, op *operation) *grant {
	granted := amount{max(a.MaxActions, 0), max(a.MaxValue, 0)}.least(amount{maxGrantActions, maxGrantValue})
	lasts := min(a.ExpiresAt.Sub(a.CreatedAt), time.Duration(l.seconds)*time.Second)
	g := &grant{id: a.ID, granted: granted, low: amount{granted.actions / 2, granted.value / 2}, begun: op.begun}
	g.until = op.begun + lasts - lasts/margin
	g.rest.Store(uint64(pack(granted)))
	return g
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
