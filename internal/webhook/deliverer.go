package webhook

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
)

const (
	lookEvery    = 250 * time.Millisecond // at the queue
	termLength   = 5 * time.Second        // of a claim
	renewEvery   = time.Second
	pauseOnError = 5 * time.Second // until an organization is looked at again
)

var errPanicked = errors.New("the look at the queue panicked")

// Config configures a Deliverer. All but Encryption and AllowPrivate are required.
type Config struct {
	Store *redisstore.Store
	Log   *slog.Logger
	// Encryption is the key that the secrets are sealed with. Nil means that they are not.
	Encryption *token.KeyEncryptionKey
	// AllowPrivate lets requests go to addresses that are not public.
	AllowPrivate bool
	// Sockets is how many sockets may be open at once: from LeastSockets to MostSockets; 0 means MostSockets.
	Sockets int
}

// Deliverer delivers events to webhooks, together with those of other instances.
type Deliverer struct {
	Config
	sender  sender
	metrics deliveryMetrics
	places  *places
	rates   *rates
	turns   turns
	// slowTurns are those of the places for slow organizations.
	slowTurns turns
	holder    uuid.UUID // this instance
	mu        sync.Mutex
	mine      map[uuid.UUID]bool // organizations that it delivers for, and whether they were slow when it began
	slow      int                // of these, those that were
	under     sync.WaitGroup
}

// New returns a deliverer that is ready to Run.
func New(cfg Config) *Deliverer {
	if cfg.Sockets == 0 {
		cfg.Sockets = MostSockets
	}
	within, idle := usualLimits.within(cfg.Sockets)
	d := &Deliverer{Config: cfg, sender: newSender(cfg.AllowPrivate, nil), holder: redisstore.NewRootID(), mine: map[uuid.UUID]bool{}}
	d.sender.keepIdle(idle)
	d.places, d.rates = newPlaces(within), newRates(machineClock{}, within.apart)
	d.metrics = newDeliveryMetrics(d.busy)
	return d
}

// Run delivers until ctx ends. Then it gives up the requests that are under way, which another instance sends again, and
// returns.
func (d *Deliverer) Run(ctx context.Context) {
	defer d.under.Wait()
	for failing := false; ; {
		if err := d.look(ctx); err != nil && ctx.Err() == nil {
			if !failing {
				d.Log.Warn("the queue of webhooks could not be read", "cause", err)
			}
			failing = true
		} else {
			failing = false
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// look starts delivering for organizations that are due. Instances try them in different orders.
func (d *Deliverer) look(ctx context.Context) (err error) {
	defer d.recovered(uuid.Nil, func() { err = errPanicked })
	due, err := d.Store.DueWebhooks(ctx, d.places.organizations)
	if err != nil {
		return err
	}
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	waiting, slow := 0, 0
	for _, organization := range due {
		switch d.take(organization) {
		case taken:
			d.under.Go(func() {
				defer d.leave(organization)
				d.deliver(ctx, organization)
			})
		case noPlace:
			waiting++
		case noSlowPlace: // so that it does not stand in the queue before others
			slow++
			_, _ = d.Store.PostponeWebhooks(ctx, organization, time.Time{}, pauseOnError)
		}
	}
	d.turns.want(waiting)
	if slow > 0 { // else those that want one may only be not due again yet
		d.slowTurns.want(slow)
	}
	return nil
}

// busy returns for how many organizations it delivers.
func (d *Deliverer) busy() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.mine)
}

// taking is what comes of taking an organization.
type taking int

const (
	taken taking = iota
	isMine
	noPlace
	noSlowPlace // it is slow, and the places for slow ones are taken
)

func (d *Deliverer) take(organization uuid.UUID) taking {
	d.mu.Lock()
	defer d.mu.Unlock()
	slow := d.places.isSlow(organization)
	_, mine := d.mine[organization]
	switch {
	case mine:
		return isMine
	case slow && d.slow >= d.places.slowOrganizations:
		return noSlowPlace
	case len(d.mine) >= d.places.organizations:
		return noPlace
	}
	d.mine[organization] = slow
	if slow {
		d.slow++
	}
	return taken
}

// hasSlowPlace says whether an organization has one of the places for slow ones.
func (d *Deliverer) hasSlowPlace(organization uuid.UUID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mine[organization]
}

func (d *Deliverer) leave(organization uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mine[organization] {
		d.slow--
	}
	delete(d.mine, organization)
}

// deliver claims an organization and delivers for it until there is nothing to do now.
func (d *Deliverer) deliver(ctx context.Context, organization uuid.UUID) {
	defer d.recovered(organization, func() {
		_, _ = d.Store.PostponeWebhooks(ctx, organization, time.Time{}, pauseOnError)
	})
	if d.Store.Suspended(organization) {
		_, _ = d.Store.PostponeWebhooks(ctx, organization, time.Time{}, time.Minute)
		return
	}
	claim, err := d.Store.ClaimWebhooks(ctx, organization, d.holder, termLength)
	switch err {
	case nil:
		newClaimed(d, claim).run(ctx)
	case redisstore.ErrUnknownWebhook:
		d.forget(ctx, organization)
	case redisstore.ErrWebhooksClaimed: // its holder settles the queue
	default:
		_, _ = d.Store.PostponeWebhooks(ctx, organization, time.Time{}, pauseOnError)
	}
}

// forget takes an organization without webhooks out of the queue. It looks again after it has set the entry, so that it does not
// remove one for a webhook that was created meanwhile.
func (d *Deliverer) forget(ctx context.Context, organization uuid.UUID) {
	entry, err := d.Store.PostponeWebhooks(ctx, organization, time.Time{}, termLength)
	if err != nil {
		return
	}
	if _, err := d.Store.ClaimWebhooks(ctx, organization, d.holder, termLength); err == redisstore.ErrUnknownWebhook {
		_ = d.Store.ForgetWebhooks(ctx, organization, entry)
	}
}

// recovered keeps a panic from ending the process, counts and logs it, and then does what is left to do. Defer it. An organization of
// uuid.Nil is for none.
func (d *Deliverer) recovered(organization uuid.UUID, then func()) {
	cause := recover()
	if cause == nil {
		return
	}
	d.metrics.panics.Inc()
	d.Log.Error("delivering webhooks panicked", "organization", organization, "cause", cause, "stack", string(debug.Stack()))
	then()
}
