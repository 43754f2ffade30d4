package webhook

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"remit/redisstore/records"
	"remit/redisstore/webhooks"
)

const (
	perTurn     = 4   // attempts in a pass for each that it makes at once
	feedPage    = 100 // events that are read at once
	maxUnderWay = 8   // requests to one webhook
	notKept     = "the event is no longer kept"
	cannotOpen  = "the secret cannot be decrypted with this key encryption key"
)

// pass is what a loop does between two reports.
type pass struct {
	deliverer *Deliverer
	loop      *loop
	webhook   webhooks.Webhook
	now       time.Time // by Redis's clock, when it began
	began     time.Time // by this instance's
	size      int       // attempts of each kind, due and new
	attempts  []attempt
	report    webhooks.DeliveryReport
	settings  webhooks.Settings // for the next request
	read      time.Time         // when they were, by this instance's clock
	waiting   int               // deliveries that waited when it began
	later     time.Time         // when the next retry is due, by this instance's clock
	left      bool              // attempts were left to the next pass
}

// attempt is one delivery of a pass. Its event is nil if the feed has it no more.
type attempt struct {
	delivery webhooks.Delivery
	event    *records.FeedEvent
	before   *webhooks.Progress // of a new one: what is reached without it
}

// pass attempts what is due and what is new. It reports nothing.
func (l *loop) pass(ctx context.Context, w webhooks.Webhook) (*pass, error) {
	size := perTurn * l.atOnce
	if !w.Progress.Failing.IsZero() {
		size = maxUnderWay // each may take requestTime
	}
	due, err := l.deliverer.Store.DueDeliveries(ctx, l.organization, w.ID, size)
	w.Settings = due.Settings
	p := &pass{deliverer: l.deliverer, loop: l, webhook: w, size: size, now: due.Now, began: time.Now(), waiting: due.Waiting}
	p.settings, p.read = w.Settings, p.began
	p.report = webhooks.DeliveryReport{Webhook: w.ID, Found: w.Progress, Reached: w.Progress}
	if err != nil {
		return p, err
	}
	if !due.Later.IsZero() {
		p.later = p.began.Add(due.Later.Sub(due.Now))
	}
	p.takeTest()
	if err := p.takeDue(ctx, due.Due); err != nil {
		return p, err
	}
	if err := p.takeNew(ctx, p.room(len(due.Due))); err != nil {
		return p, err
	}
	if err := p.attemptAll(ctx); err != nil {
		return p, err
	}
	p.judge()
	return p, nil
}

// found says whether there is anything to report.
func (p *pass) found() bool {
	return len(p.attempts) > 0 || len(p.report.Held) > 0 || p.report.Reached != p.report.Found
}

// isFailing says whether every attempt of the last pass failed.
func (p *pass) isFailing() bool { return !p.webhook.Progress.Failing.IsZero() }

// room returns how many new events the pass may take: as many as may wait if they all fail. A webhook that fails gets one with
// each pass that retries something, so that one event which its receiver refuses does not hold up the others. A webhook that is not
// confirmed gets none.
func (p *pass) room(due int) int {
	room := min(p.size, webhooks.MostPending-p.waiting)
	switch {
	case !p.isConfirmed():
		return 0
	case !p.isFailing():
		return room
	case due == 0 && p.waiting > 0:
		return 0
	}
	return min(room, 1)
}

// takeDue takes deliveries that are due, with their events. Before the webhook is confirmed it takes tests only, and holds the others.
func (p *pass) takeDue(ctx context.Context, due []webhooks.Delivery) error {
	for _, d := range due {
		if d.Event != 0 && !p.isConfirmed() {
			p.report.Held = append(p.report.Held, p.hold(d))
			continue
		}
		event, err := p.eventOf(ctx, d)
		if err != nil {
			return err
		}
		p.attempts = append(p.attempts, attempt{delivery: d, event: event})
	}
	return nil
}

func (p *pass) eventOf(ctx context.Context, d webhooks.Delivery) (*records.FeedEvent, error) {
	if d.Event == 0 {
		return testEvent(d), nil
	}
	found, err := p.deliverer.Store.EventsAfter(ctx, p.loop.organization, d.Event-1, 1)
	if err != nil || len(found) == 0 || found[0].Sequence != d.Event {
		return nil, err
	}
	return &found[0], nil
}

// takeNew takes new events that the webhook wants, at most so many, and moves the position behind them and those it does not want.
func (p *pass) takeNew(ctx context.Context, room int) error {
	if room <= 0 {
		return nil
	}
	events, err := p.deliverer.Store.EventsAfter(ctx, p.loop.organization, p.report.Found.Position, feedPage)
	for _, e := range events {
		if room == 0 {
			break
		}
		reached, before := &p.report.Reached, p.report.Reached
		reached.Missed += e.Sequence - reached.Position - 1
		reached.Position = e.Sequence
		if p.webhook.Settings.Wants(e.Type) {
			room--
			id := webhooks.DeliveryID(p.webhook.ID, e.Sequence)
			p.attempts = append(p.attempts, attempt{webhooks.Delivery{ID: id, Event: e.Sequence, Type: e.Type, Created: p.clock()}, &e, &before})
		}
	}
	return err
}

// attemptAll makes the attempts, a few at once. It begins none after a slow one, after the organization's turn, or for another URL. If ctx
// ends meanwhile, none counts.
func (p *pass) attemptAll(ctx context.Context) error {
	most := p.loop.atOnce
	if p.isFailing() {
		most = 1
	}
	turns, slow, begun := make(chan struct{}, most), atomic.Bool{}, 0
	p.report.Outcomes = make([]webhooks.Delivery, len(p.attempts))
	var under sync.WaitGroup
	for i, a := range p.attempts {
		turns <- struct{}{}
		if slow.Load() || p.loop.of.ending.Load() {
			break
		}
		leave, waited := p.enter(ctx)
		if leave == nil {
			p.loop.of.noteWait(waited)
			break
		}
		begun++
		p.report.Outcomes[i] = p.outcome(a, result{failed: "the service failed"}) // unless it does not
		settings := p.settings
		under.Go(func() {
			defer func() { <-turns }()
			defer leave()
			defer p.deliverer.recovered(p.loop.organization, func() {})
			r := p.attempt(ctx, settings, a)
			if p.report.Outcomes[i] = p.outcome(a, r); r.took >= p.deliverer.places.soon {
				slow.Store(true)
			}
			p.loop.of.note(p.webhook.ID, r.took >= p.deliverer.places.soon, waited)
		})
	}
	under.Wait()
	p.leaveOut(begun)
	p.adapt(slow.Load())
	return ctx.Err()
}

// leaveOut leaves the attempts from this one on to the next pass.
func (p *pass) leaveOut(from int) {
	p.left = from < len(p.attempts)
	for _, a := range p.attempts[from:] {
		if a.before != nil {
			p.report.Reached = *a.before
			break
		}
	}
	p.attempts, p.report.Outcomes = p.attempts[:from], p.report.Outcomes[:from]
}

// adapt decides how many requests the next pass makes at once: twice as many after one in which all succeeded, one after a slow one or
// when all failed.
func (p *pass) adapt(slow bool) {
	delivered := 0
	for _, d := range p.report.Outcomes {
		if d.Status == webhooks.DeliveryDelivered {
			delivered++
		}
	}
	switch {
	case len(p.attempts) == 0:
	case slow || delivered == 0:
		p.loop.atOnce = 1
	case delivered == len(p.attempts):
		p.loop.atOnce = min(2*p.loop.atOnce, maxUnderWay)
	}
}

// clock returns the time by Redis's clock.
func (p *pass) clock() time.Time { return p.now.Add(time.Since(p.began)) }

func (p *pass) attempt(ctx context.Context, settings webhooks.Settings, a attempt) result {
	if a.event == nil {
		return result{failed: notKept}
	}
	secrets, err := open(p.deliverer.Encryption, webhooks.Webhook{ID: p.webhook.ID, Settings: settings}, p.clock())
	if err != nil {
		return result{failed: cannotOpen}
	}
	body, err := p.bodyOf(ctx, *a.event)
	if err != nil {
		return result{failed: "the event cannot be written"}
	}
	return p.deliverer.sender.send(ctx, request{settings.URL, a.delivery.ID.String(), body, secrets})
}

// outcome returns a delivery after an attempt.
func (p *pass) outcome(a attempt, r result) webhooks.Delivery {
	d, now := a.delivery, p.clock()
	if d.First.IsZero() {
		d.First = now.Add(-r.took)
	}
	d.Attempts++
	d.Last, d.Took, d.Answer, d.Error, d.Next = now, r.took, r.status, r.failed, time.Time{}
	if r.failed == "" {
		d.Status = webhooks.DeliveryDelivered
		return d
	}
	d.Status = webhooks.DeliveryDead
	if next, again := nextAttempt(d.First, now, d.Attempts); again && a.event != nil {
		d.Status, d.Next = webhooks.DeliveryPending, next
	}
	return d
}

// judge notes whether the webhook fails now, and whether it is confirmed. The success that confirms it, and the first one after failures,
// make everything due that waits.
func (p *pass) judge() {
	if len(p.attempts) == 0 {
		return
	}
	for _, d := range p.report.Outcomes {
		if d.Status == webhooks.DeliveryDelivered {
			p.report.Reached.Failing = time.Time{}
			p.report.Hurry = p.isFailing() || !p.isConfirmed()
			p.confirm()
			return
		}
	}
	if !p.isFailing() {
		p.report.Reached.Failing = p.clock()
	}
}
