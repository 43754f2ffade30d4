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

// A host that accepts no test receives tests only, however many events are caused. Once it accepts one, everything follows. Another URL is
// another receiver: what the one before confirmed does not count, and what waits for a retry waits for its test.
func TestAReceiverThatAcceptsNoTestReceivesNothingElse(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]int64{"of a new webhook": 1, "at a changed URL": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, r := newReceiver(t), newReceiver(t)
			first.refuses(func(int64) bool { return true })
			r.refuses(func(int64) bool { return true })
			o := newOrganizationWithHooks(t)
			at := time.Now()
			o.redis.SetTime(at)
			waiting := func() int64 { return int64(len(o.deliveries(t, 0, webhooks.DeliveryPending))) }
			if version == 1 {
				o.unconfirmed(t, r.URL)
				o.deliver(t)
			} else {
				o.hook(t, first.URL)
				o.deliver(t) // now that the webhook is confirmed, for which it was claimed
				o.happen(t, 1)
				eventually(t, "one waits", func() bool { return waiting() == 1 })
				o.change(t, 0, func(settings *webhooks.Settings) { settings.Description = "the same URL" })
				if !o.confirmed(t, 0) {
					t.Error("another description ended the confirmation")
				}
				o.change(t, 0, func(settings *webhooks.Settings) { settings.URL = r.URL })
			}
			eventually(t, "the test is refused", func() bool { return waiting() == version })
			if version == 2 {
				must(o.store.SendAgain(t.Context(), o.key, o.hooks[0].ID, webhooks.DeliveryID(o.hooks[0].ID, 1), at))(t)
			}
			o.happen(t, 130-o.newest) // as one mass operation makes them
			for range 3 {
				before := r.attempts()
				at = at.Add(time.Hour)
				o.redis.SetTime(at)
				o.happen(t, 10)
				eventually(t, "the test is sent again", func() bool { return r.attempts() > before })
				eventually(t, "nothing is left to do", func() bool { return isIdle(t, o) })
			}
			r.mu.Lock()
			if number, found := r.ids[webhooks.URLTestID(o.hooks[0].ID, version).String()]; len(r.ids) != 1 || !found || number != 0 {
				t.Errorf("requests of %v; want the test only", r.ids)
			}
			r.mu.Unlock()
			if o.confirmed(t, 0) {
				t.Error("the webhook is confirmed")
			}
			r.refuses(func(int64) bool { return false })
			o.redis.SetTime(at.Add(time.Hour))
			eventually(t, "all arrive", func() bool { return r.has(numbers(1, 160)...) })
			if tests, events := r.total(); tests != 1 || events != 160 || first.has(1) || !o.confirmed(t, 0) {
				t.Errorf("%d tests and %d events were accepted; confirmed %t", tests, events, o.confirmed(t, 0))
			}
		})
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
	eventually(t, "nothing is left to do", o.isQueueEmpty)
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
