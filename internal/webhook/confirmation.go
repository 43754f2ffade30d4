package webhook

import (
	"time"

	"remit/redisstore/webhooks"
)

const (
	// holdTime is after how long a delivery that is held comes up again, if no confirmation comes before.
	holdTime     = time.Hour
	notConfirmed = "the webhook was not confirmed"
)

// isConfirmed says whether the receiver at the webhook's URL has accepted a test.
func (p *pass) isConfirmed() bool { return !p.webhook.Confirmed().IsZero() }

// takeTest takes the test that a new URL gets by itself. It is the first attempt of its pass.
func (p *pass) takeTest() {
	version := p.webhook.Settings.URLVersion
	if p.webhook.Progress.Tested == version || p.waiting >= webhooks.MostWaiting {
		return
	}
	before := p.report.Reached
	p.report.Reached.Tested, p.report.Reached.Confirmed = version, time.Time{}
	test := webhooks.Delivery{ID: webhooks.URLTestID(p.webhook.ID, version), Type: webhooks.TestEvent, Created: p.clock()}
	p.attempts = append(p.attempts, attempt{test, testEvent(test), &before})
}

// hold returns a delivery that is not attempted because the webhook is not confirmed. It is given up when one that is attempted would be.
func (p *pass) hold(d webhooks.Delivery) webhooks.Delivery {
	now := p.clock()
	if d.First.IsZero() {
		d.First = now
	}
	end := d.First.Add(giveUpAfter)
	if d.Next = now.Add(holdTime); d.Next.After(end) {
		d.Next = end
	}
	if !now.Before(end) {
		d.Status, d.Error, d.Last, d.Next = webhooks.DeliveryDead, notConfirmed, now, time.Time{}
	}
	return d
}

// confirm notes that the receiver at the URL that the pass began with has accepted a test.
func (p *pass) confirm() {
	if !p.isConfirmed() {
		p.report.Reached.Tested, p.report.Reached.Confirmed = p.webhook.Settings.URLVersion, p.clock()
	}
}
