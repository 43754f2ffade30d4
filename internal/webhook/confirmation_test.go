package webhook

import (
	"testing"
	"time"

	"remit/redisstore/webhooks"
)

func (o *organizationWithHooks) confirmed(t *testing.T, hook int) bool {
	t.Helper()
	w := must(o.store.Webhook(t.Context(), o.key, o.hooks[hook].ID))(t)
	return !w.Confirmed().IsZero()
}

// total returns how many tests and deliveries of events were accepted. One may come twice: when a test moves the clock, its claim ends.
func (r *receiver) total() (tests, events int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.kept {
		if r.ids[id] == 0 {
			tests++
		} else {
			events++
		}
	}
	return tests, events
}

// A host that accepts no test receives tests only, however many events are caused. Once it accepts one, everything follows.
func TestAReceiverThatAcceptsNoTestReceivesNothingElse(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.refuses(func(int64) bool { return true })
	o := newOrganizationWithHooks(t)
	at := time.Now()
	o.redis.SetTime(at)
	o.unconfirmed(t, r.URL)
	o.deliver(t)
	o.happen(t, 100) // as one mass operation makes them
	waiting := func() int { return len(o.deliveries(t, 0, webhooks.DeliveryPending)) }
	eventually(t, "the test is refused", func() bool { return waiting() == 1 })
	for range 3 {
		before := r.attempts()
		at = at.Add(time.Hour)
		o.redis.SetTime(at)
		o.happen(t, 10)
		eventually(t, "the test is sent again", func() bool { return r.attempts() > before })
		eventually(t, "nothing is left to do", func() bool { return isIdle(t, o) })
	}
	test := webhooks.URLTestID(o.hooks[0].ID, 1).String()
	r.mu.Lock()
	if number, found := r.ids[test]; len(r.ids) != 1 || !found || number != 0 {
		t.Errorf("requests of %v; want the test only", r.ids)
	}
	r.mu.Unlock()
	if o.confirmed(t, 0) {
		t.Error("the webhook is confirmed")
	}
	r.refuses(func(int64) bool { return false })
	o.redis.SetTime(at.Add(time.Hour))
	eventually(t, "all arrive", func() bool { return r.has(numbers(1, 130)...) })
	if tests, events := r.total(); tests != 1 || events != 130 || !o.confirmed(t, 0) {
		t.Errorf("%d tests and %d events were accepted; confirmed %t", tests, events, o.confirmed(t, 0))
	}
}

// Another URL is another receiver: what the one before confirmed does not count, and what waits for a retry waits for its test.
func TestAChangedURLIsConfirmedAnew(t *testing.T) {
	t.Parallel()
	first, second := newReceiver(t), newReceiver(t)
	first.refuses(func(int64) bool { return true })
	second.refuses(func(int64) bool { return true })
	o := newOrganizationWithHooks(t, first.URL)
	at := time.Now()
	o.redis.SetTime(at)
	o.deliver(t)
	o.happen(t, 1)
	waiting := func() int { return len(o.deliveries(t, 0, webhooks.DeliveryPending)) }
	eventually(t, "one waits", func() bool { return waiting() == 1 })
	o.change(t, 0, func(settings *webhooks.Settings) { settings.Description = "the same URL" })
	if !o.confirmed(t, 0) {
		t.Error("another description ended the confirmation")
	}
	o.change(t, 0, func(settings *webhooks.Settings) { settings.URL = second.URL })
	if o.confirmed(t, 0) {
		t.Error("another URL is confirmed")
	}
	eventually(t, "the second receiver is tested", func() bool { return waiting() == 2 })
	must(o.store.SendAgain(t.Context(), o.key, o.hooks[0].ID, webhooks.DeliveryID(o.hooks[0].ID, 1), at))(t)
	o.happen(t, 20)
	asked := second.attempts()
	o.redis.SetTime(at.Add(time.Hour))
	eventually(t, "it is tested again", func() bool { return second.attempts() > asked })
	eventually(t, "nothing is left to do", func() bool { return isIdle(t, o) })
	second.mu.Lock()
	if len(second.ids) != 1 {
		t.Errorf("it received %v, want the test only", second.ids)
	}
	second.mu.Unlock()
	second.refuses(func(int64) bool { return false })
	o.redis.SetTime(at.Add(2 * time.Hour))
	eventually(t, "all arrive", func() bool { return second.has(numbers(1, 21)...) })
	if tests, events := second.total(); tests != 1 || events != 21 || first.has(1) || !o.confirmed(t, 0) {
		t.Errorf("%d tests and %d events; confirmed %t", tests, events, o.confirmed(t, 0))
	}
}

func (o *organizationWithHooks) change(t *testing.T, hook int, change func(*webhooks.Settings)) {
	t.Helper()
	must(o.store.ChangeWebhook(t.Context(), o.key, o.hooks[hook].ID, nil, func(settings *webhooks.Settings) error {
		change(settings)
		return nil
	}))(t)
}

// What waits for a confirmation is given up when what waits for its receiver is.
func TestWhatWaitsADayForAConfirmationIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.refuses(func(int64) bool { return true })
	o := newOrganizationWithHooks(t, r.URL)
	at := time.Now()
	o.redis.SetTime(at)
	d, _ := o.deliver(t)
	o.happen(t, 1)
	eventually(t, "it waits", func() bool { return len(o.deliveries(t, 0, webhooks.DeliveryPending)) == 1 })
	o.change(t, 0, func(settings *webhooks.Settings) { settings.URL += "/other" })
	eventually(t, "the test waits too", func() bool { return len(o.deliveries(t, 0, webhooks.DeliveryPending)) == 2 })
	o.redis.SetTime(at.Add(25 * time.Hour))
	eventually(t, "both are given up", func() bool { return len(o.deliveries(t, 0, webhooks.DeliveryDead)) == 2 })
	for _, dead := range o.deliveries(t, 0, webhooks.DeliveryDead) {
		if want := notConfirmed; dead.Event == 1 && (dead.Error != want || dead.Attempts != 1) {
			t.Errorf("given up as %+v, want %q", dead, want)
		}
	}
	o.wantMetric(t, "both are counted", d.metrics.dead, 2)
	o.happen(t, 1)
	eventually(t, "nothing is left to do", func() bool { return o.isQueueEmpty(t) })
	if tests, events := r.total(); tests != 0 || events != 0 || r.has(2) {
		t.Error("something was accepted")
	}
}

// A test by hand confirms too, and a change of the URL while a request to the old one is under way confirms nothing.
func TestTheURLThatWasTestedIsConfirmed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	o := newOrganizationWithHooks(t)
	o.unconfirmed(t, r.URL)
	w := o.hooks[0]
	o.change(t, 0, func(settings *webhooks.Settings) { settings.URL += "/other" })
	o.confirm(t, w)
	if o.confirmed(t, 0) {
		t.Error("a report about the URL before confirms the new one")
	}
	must(o.store.SendTest(t.Context(), o.key, w.ID, nil, time.Now()))(t)
	o.deliver(t)
	eventually(t, "it is confirmed", func() bool { return o.confirmed(t, 0) })
}
