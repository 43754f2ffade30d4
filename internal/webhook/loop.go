package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/redisstore"
	"remit/redisstore/webhooks"
)

// loop delivers for one webhook. It waits for no other.
type loop struct {
	deliverer    *Deliverer
	of           *claimed
	organization uuid.UUID
	claim        webhooks.Claim // its holder and term
	stop         func()

	mu      sync.Mutex
	webhook webhooks.Webhook
	unsure  bool      // about the progress: a report failed
	quiet   time.Time // when a pass began that found nothing; zero after one that found something
	later   time.Time // when the next retry is due, by this instance's clock; zero for none
	atOnce  int       // requests that a pass makes at once
}

func newLoop(c *claimed, w webhooks.Webhook, stop func()) *loop {
	return &loop{deliverer: c.deliverer, of: c, organization: c.claim.Organization, claim: c.claim, stop: stop, webhook: w, atOnce: 1}
}

// update takes the progress as it is stored now, if it is not known. Between reports no other instance changes the progress, and the
// store refuses a report that follows another.
func (l *loop) update(w webhooks.Webhook) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsure {
		l.webhook.Progress, l.unsure = w.Progress, false
	}
}

func (l *loop) current() (w webhooks.Webhook, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.webhook, !l.unsure
}

// idle returns when a pass began that found nothing, zero if the last one found something, and when the next retry is due.
func (l *loop) idle() (since, later time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quiet, l.later
}

func (l *loop) run(ctx context.Context) {
	for ctx.Err() == nil && !l.of.ending.Load() {
		if l.step(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// step makes one pass, if the progress is known. It returns whether another may find something at once. After a panic, which may
// have come after a report, the progress is unknown.
func (l *loop) step(ctx context.Context) (again bool) {
	defer l.deliverer.recovered(l.organization, func() {
		l.mu.Lock()
		l.unsure, l.quiet = true, time.Time{} // until the claim is renewed
		l.mu.Unlock()
	})
	w, known := l.current()
	if !known {
		return false
	}
	began := time.Now()
	p, err := l.pass(ctx, w)
	if err == nil && !p.found() {
		if p.left {
			began = time.Time{} // it found what it could not begin, which keeps the organization in the queue
		}
		l.note(began, p.later)
		return false
	}
	l.note(time.Time{}, p.later)
	if err != nil {
		l.endIfDeleted(err)
		return false
	}
	reached, err := l.deliverer.Store.NoteDeliveries(ctx, l.claim, p.report)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.unsure = true
		l.endIfDeleted(err)
		return false
	}
	l.webhook.Progress = reached
	l.deliverer.metrics.note(p.report)
	return true
}

func (l *loop) endIfDeleted(err error) {
	if errors.Is(err, redisstore.ErrUnknownWebhook) {
		l.stop()
	}
}

func (l *loop) note(quiet, later time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet, l.later = quiet, later
}
