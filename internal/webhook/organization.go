package webhook

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"remit/redisstore"
	"remit/redisstore/webhooks"
)

// claimed is an organization that this instance delivers for.
type claimed struct {
	deliverer *Deliverer
	claim     webhooks.Claim
	loops     map[uuid.UUID]*loop
	under     sync.WaitGroup
	entry     time.Time // in the queue, as this instance has set it
	set       time.Time // when, by this instance's clock

	own     chan struct{} // places for its requests
	pace    pace          // of its requests
	began   time.Time
	ending  atomic.Bool  // its loops end after their pass, to give its place to another organization
	gives   *turns       // to which of them, if so
	isSlow  bool         // its place is one of those for slow organizations
	running atomic.Int32 // loops
	over    bool         // its turn is, and its loops have ended
	quick   atomic.Bool  // an attempt was not slow, and did not wait long
	slow    atomic.Bool  // one was, or did
}

func newClaimed(d *Deliverer, claim webhooks.Claim) *claimed {
	return &claimed{
		deliverer: d, claim: claim, loops: map[uuid.UUID]*loop{}, own: make(chan struct{}, d.places.requestsOf), began: time.Now(),
		pace: pace{ended: make(chan struct{})}, isSlow: d.hasSlowPlace(claim.Organization),
	}
}

// run runs the loops of the webhooks until none has anything to do now, the claim is lost, the organization is suspended, its turn is
// over or ctx ends.
func (c *claimed) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer c.release()
	defer c.under.Wait()
	defer stop()
	for renewed := time.Now(); !c.deliverer.Store.Suspended(c.claim.Organization); {
		c.over = c.ending.Load() && c.running.Load() == 0
		settled, err := c.settle(ctx)
		if settled || c.over || err == nil && c.follow(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewEvery):
		}
		c.endTurn()
		began := time.Now()
		renewal, err := c.deliverer.Store.ClaimWebhooks(ctx, c.claim.Organization, c.deliverer.holder, termLength)
		switch {
		case err == nil && renewal.Term == c.claim.Term:
			c.claim, renewed = renewal, began
		case err == nil, isLost(err), time.Since(renewed) > termLength:
			return
		}
	}
}

// endTurn has the loops end after the requests under way, if other organizations wait for its place. What waits for a rate waits no longer. What
// is left to do is due again at once, behind what has waited longer.
func (c *claimed) endTurn() {
	switch {
	case c.ending.Load():
		return
	case c.deliverer.turns.ends(c.began, c.deliverer.places.turn):
		c.gives = &c.deliverer.turns
	case c.isSlow && c.deliverer.slowTurns.ends(c.began, c.deliverer.places.turn):
		c.gives = &c.deliverer.slowTurns
	default:
		return
	}
	c.ending.Store(true)
	close(c.pace.ended)
}

func isLost(err error) bool {
	return errors.Is(err, redisstore.ErrWebhooksClaimed) || errors.Is(err, redisstore.ErrUnknownWebhook)
}

// settle takes the organization out of the queue, or sets when it is due next, if every loop has found nothing since its entry was
// set. Otherwise it sets the entry to the end of the term: what is numbered before that is seen by the loops, and what is numbered
// later makes it due again. When its turn is over, what is left is due at once, but not before the slow ones that it gives its place to.
func (c *claimed) settle(ctx context.Context) (settled bool, err error) {
	if next, quiet := c.quiet(); quiet {
		return true, c.leaveQueue(ctx, next)
	}
	until := termLength
	if c.over {
		until = 0
		if c.gives == &c.deliverer.slowTurns {
			until = pauseOnError
		}
	}
	entry, err := c.deliverer.Store.PostponeWebhooks(ctx, c.claim.Organization, time.Time{}, until)
	if err == nil {
		c.entry, c.set = entry, time.Now() // a pass that begins later sees what was numbered before
	}
	return false, err
}

func (c *claimed) leaveQueue(ctx context.Context, next time.Duration) error {
	if next == 0 {
		return c.deliverer.Store.ForgetWebhooks(ctx, c.claim.Organization, c.entry)
	}
	_, err := c.deliverer.Store.PostponeWebhooks(ctx, c.claim.Organization, c.entry, next)
	return err
}

// quiet says whether every loop has found nothing in a pass that began after the entry was set, and after how long the first
// retry is due: 0 for none.
func (c *claimed) quiet() (next time.Duration, quiet bool) {
	if c.set.IsZero() {
		return 0, false
	}
	for _, w := range c.claim.Webhooks {
		if c.loops[w.ID] == nil { // it was created meanwhile, and has yet to receive the event that woke it
			return 0, false
		}
	}
	for _, l := range c.loops {
		since, later := l.idle()
		if since.IsZero() || !since.After(c.set) {
			return 0, false
		}
		if wait := max(time.Until(later), time.Millisecond); !later.IsZero() && (next == 0 || wait < next) {
			next = wait
		}
	}
	return next, true
}

// follow starts, updates and ends loops as the claim's webhooks are now. It returns whether there are none.
func (c *claimed) follow(ctx context.Context) (none bool) {
	named := map[uuid.UUID]bool{}
	for _, w := range c.claim.Webhooks {
		named[w.ID] = true
		if l := c.loops[w.ID]; l != nil {
			l.update(w)
			continue
		}
		if c.ending.Load() {
			continue
		}
		running, stop := context.WithCancel(ctx)
		l := newLoop(c, w, stop)
		c.loops[w.ID] = l
		c.running.Add(1)
		c.under.Go(func() {
			defer c.running.Add(-1)
			defer c.deliverer.recovered(c.claim.Organization, func() {})
			l.run(running)
		})
	}
	for id, l := range c.loops {
		if !named[id] {
			l.stop()
			delete(c.loops, id)
		}
	}
	return len(named) == 0
}

// note remembers of an attempt whether it was slow, or waited as long for its host. An organization is slow when all its attempts were or did:
// it keeps its place from others either way. The wait makes no webhook slow, for its receiver answers soon.
func (c *claimed) note(webhook uuid.UUID, slow, waited bool) {
	c.deliverer.places.noteSlow(webhook, slow)
	if c.noteWait(slow || waited); !slow && !waited {
		c.quick.Store(true)
	}
}

// noteWait remembers of a request, also of one that did not begin, whether it kept the organization for as long as a slow attempt.
func (c *claimed) noteWait(long bool) {
	if long {
		c.slow.Store(true)
	}
}

// release ends the claim, also when this instance is stopping, so that another can take over at once.
func (c *claimed) release() {
	if c.ending.Load() {
		defer c.gives.ended()
	}
	if quick := c.quick.Load(); quick || c.slow.Load() {
		c.deliverer.places.noteSlow(c.claim.Organization, !quick)
	}
	ctx, cancel := context.WithTimeout(context.Background(), renewEvery)
	defer cancel()
	_ = c.deliverer.Store.ReleaseWebhooks(ctx, c.claim) // it ends by itself
}
