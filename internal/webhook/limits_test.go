package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/redisstore"
	"remit/redisstore/webhooks"
)

// counter is a receiver that counts its requests. Each takes so long.
type counter struct {
	*httptest.Server
	mu          sync.Mutex
	under, most int // requests
	all         int
}

func newCounter(t *testing.T, takes func(request int) time.Duration) *counter {
	t.Helper()
	c := &counter{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then net/http notices that the client has gone
		c.mu.Lock()
		c.all++
		c.under++
		c.most = max(c.most, c.under)
		pause := takes(c.all)
		c.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.under--
	}))
	t.Cleanup(c.Close)
	return c
}

func always(pause time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return pause }
}

func (c *counter) counts() (all, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.most
}

func (c *counter) has(requests int) bool {
	all, _ := c.counts()
	return all >= requests
}

func TestAFreshWebhookBeginsWithOneRequestAtATime(t *testing.T) {
	t.Parallel()
	var c *counter
	c = newCounter(t, func(request int) time.Duration { // the counter is locked
		if request == 2 && c.under != 1 {
			t.Error("the second request came before the first was answered")
		}
		return 100 * time.Millisecond
	})
	o := newOrganizationWithHooks(t, c.URL)
	o.deliver(t)
	o.happen(t, 90)
	eventually(t, "all arrive", func() bool { return c.has(90) })
	_, most := c.counts()
	wantEqual(t, "later requests at once", most, maxUnderWay)
}

func TestASlowWebhookIsAskedOneRequestAtATimeAgain(t *testing.T) {
	t.Parallel()
	var c *counter
	most := 0
	c = newCounter(t, func(request int) time.Duration { // the counter is locked
		if request > 90 { // those that were under way with the first slow ones have ended
			most = max(most, c.under)
		}
		if request > 70 {
			return 150 * time.Millisecond
		}
		return 0
	})
	o := newOrganizationWithHooks(t, c.URL)
	l := unpaced
	l.soon = 100 * time.Millisecond
	o.deliverWithin(t, l)
	o.happen(t, 110)
	eventually(t, "all arrive", func() bool { return c.has(110) })
	c.mu.Lock()
	defer c.mu.Unlock()
	wantEqual(t, "requests at once", most, 1)
}

// With a slow attempt a pass ends. What it had taken and not begun is neither lost nor sent twice.
func TestASlowAttemptLosesNothing(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	handler := r.Config.Handler
	r.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if r.attempts()%7 == 3 {
			time.Sleep(30 * time.Millisecond)
		}
		handler.ServeHTTP(w, request)
	})
	o := newOrganizationWithHooks(t)
	o.hook(t, r.URL, "session.ended")
	l := unpaced
	l.soon = 20 * time.Millisecond
	o.deliverWithin(t, l)
	o.happen(t, 200)
	even := slices.DeleteFunc(numbers(1, 200), func(n int64) bool { return n%2 == 1 })
	eventually(t, "all arrive", func() bool { return r.has(even...) })
	eventually(t, "the queue is empty", o.isQueueEmpty)
	wantEqual(t, "requests for even events", r.attempts(), len(even))
	w, err := o.store.Webhook(t.Context(), o.key, o.hooks[0].ID)
	if err != nil || w.Progress.Missed != 0 || w.Progress.Position != 200 {
		t.Errorf("its progress is %+v, %v", w.Progress, err)
	}
}

// An organization that always has something to deliver gives its place to one that waits for it, and gets one again. A slow one gives its
// place to slow ones, though others are free.
func TestAnOrganizationKeepsItsPlaceForATurnOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slow                             bool
		organizations, slowOrganizations int
		soon                             time.Duration
	}{
		"quick": {false, 1, 1, usualLimits.soon}, "slow": {true, 3, 1, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last, changes atomic.Int32 // which receiver has the place, and how often that has changed
			receiver := func(number int32) *counter {
				return newCounter(t, func(int) time.Duration {
					if last.Swap(number) != number {
						changes.Add(1)
					}
					return 50 * time.Millisecond
				})
			}
			o := newOrganizationWithHooks(t, receiver(1).URL)
			other := o.another(t, receiver(2).URL)
			l := unpaced
			l.organizations, l.slowOrganizations, l.soon, l.turn = test.organizations, test.slowOrganizations, test.soon, 100*time.Millisecond
			d := o.newDeliverer(l, machineClock{})
			for _, one := range []*organizationWithHooks{o, other} {
				d.places.noteSlow(one.key.Organization, test.slow)
				one.happen(t, 3000)
			}
			run(t, d)
			eventually(t, "each has the place, gives it to the other, and has it again", func() bool { return changes.Load() >= 4 })
		})
	}
}

// Organizations whose receivers are slow have not all the places.
func TestSlowOrganizationsLeavePlacesToOthers(t *testing.T) {
	t.Parallel()
	slow := newCounter(t, always(200*time.Millisecond))
	healthy := newReceiver(t)
	o := newOrganizationWithHooks(t, slow.URL)
	second, third := o.another(t, slow.URL), o.another(t, healthy.URL)
	l := unpaced
	l.organizations, l.slowOrganizations, l.soon, l.turn = 2, 1, 100*time.Millisecond, time.Hour
	d := o.newDeliverer(l, machineClock{})
	for _, one := range []*organizationWithHooks{o, second} {
		d.places.noteSlow(one.key.Organization, true) // before it looks, else both get a place
		one.happen(t, 500)
	}
	run(t, d)
	eventually(t, "a slow one is told", func() bool { return slow.has(1) })
	third.happen(t, 1)
	eventually(t, "the other is told", func() bool { return healthy.has(1) })
	d.mu.Lock()
	defer d.mu.Unlock()
	wantEqual(t, "slow ones that have a place", d.slow, 1)
}

func TestTheRequestsUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	c := newCounter(t, always(30*time.Millisecond))
	l := unpaced
	l.requests, l.requestsOf = 3, 2
	o := newOrganizationWithHooks(t, c.URL, c.URL, c.URL)
	others := []*organizationWithHooks{o, o.another(t, c.URL, c.URL), o.another(t, c.URL, c.URL)}
	o.deliverWithin(t, l)
	o.happen(t, 20)
	eventually(t, "all arrive", func() bool { return c.has(60) })
	_, most := c.counts()
	wantEqual(t, "requests of one organization at once", most, 2)
	for _, one := range others {
		one.happen(t, 20)
	}
	eventually(t, "all of all arrive", func() bool { return c.has(60 + 60 + 80) })
	_, most = c.counts()
	wantEqual(t, "requests at once", most, 3)
}

// Receivers that hang fill the places of the slow ones, not those of the others.
func TestReceiversThatHangTakeNoPlacesOfOthers(t *testing.T) {
	t.Parallel()
	hanging, healthy := newCounter(t, always(time.Hour)), newReceiver(t)
	o := newOrganizationWithHooks(t, hanging.URL, hanging.URL)
	other := o.another(t, healthy.URL)
	l := unpaced
	l.requests = 1
	d, _ := o.deliverWithin(t, l)
	for _, hook := range o.hooks {
		d.places.noteSlow(hook.ID, true) // as after its first attempt
	}
	o.happen(t, 50)
	eventually(t, "one hangs", func() bool { return hanging.has(1) })
	other.happen(t, 50)
	eventually(t, "the other is told", func() bool { return healthy.has(numbers(1, 50)...) })
	all, _ := hanging.counts()
	wantEqual(t, "requests to those that hang", all, 1)
}

func TestASuspendedOrganizationIsToldNothingMore(t *testing.T) {
	t.Parallel()
	c := newCounter(t, always(50*time.Millisecond))
	o := newOrganizationWithHooks(t, c.URL)
	d, _ := o.deliver(t)
	must(0, o.store.ReadSuspensions(t.Context()))(t)
	o.happen(t, 3000)
	eventually(t, "it is told", func() bool { return c.has(1) })
	must(o.store.Suspend(t.Context(), o.key.Organization))(t)
	must(0, o.store.ReadSuspensions(t.Context()))(t)
	eventually(t, "its place is free", func() bool { return d.busy() == 0 })
	if all, _ := c.counts(); all >= 3000 {
		t.Error("it was told everything")
	}
}

// What waits for a retry stays bounded although some of what is sent succeeds: at the bound nothing new is sent.
func TestAWebhookOfWhichAsManyWaitAsMayIsToldNothingNew(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	const first = 64 // events are accepted, after which many are sent at once
	r.refuses(func(n int64) bool { return n > first && n%2 == 0 })
	o := newOrganizationWithHooks(t, r.URL)
	o.happen(t, 3*webhooks.MostPending)
	o.deliver(t)
	position := func() int64 { return must(o.store.Webhook(t.Context(), o.key, o.hooks[0].ID))(t).Progress.Position }
	eventually(t, "as many wait as may", func() bool { return position() >= first+2*webhooks.MostPending })
	eventually(t, "the rest is left", func() bool { return isIdle(t, o) })
	if at, wait := position(), len(o.deliveries(t, 0, webhooks.DeliveryPending)); at != first+2*webhooks.MostPending || wait != webhooks.MostPending {
		t.Errorf("%d wait, it is at event %d", wait, at)
	}
	r.refuses(func(int64) bool { return false })
	eventually(t, "all arrive", func() bool {
		o.redis.SetTime(time.Now().Add(time.Hour))
		return r.has(numbers(1, 3*webhooks.MostPending)...)
	})
}

// isIdle says whether no instance delivers for the organization now.
func isIdle(t *testing.T, o *organizationWithHooks) bool {
	t.Helper()
	claim, err := o.store.ClaimWebhooks(context.Background(), o.key.Organization, redisstore.NewRootID(), time.Millisecond)
	if err == nil {
		err = o.store.ReleaseWebhooks(context.Background(), claim)
	}
	return err == nil
}

// However few sockets it may open, a deliverer opens no more, and has places for receivers of both kinds.
func TestTheSocketsOfADelivererAreBounded(t *testing.T) {
	t.Parallel()
	for sockets := LeastSockets; sockets <= MostSockets; sockets++ {
		l, idle := usualLimits.within(sockets)
		if open := 2*l.requests*socketsOfRequest + idle; open > sockets || l.requests < 1 || l.requestsOf < 1 || idle < 1 {
			t.Fatalf("of %d sockets %d are opened: %+v, %d idle", sockets, open, l, idle)
		}
		if l.requests > 1 && l.requestsOf*2 > l.requests {
			t.Fatalf("of %d requests one organization has %d", l.requests, l.requestsOf)
		}
	}
	if l, idle := usualLimits.within(MostSockets); l != usualLimits || idle != idleConnections {
		t.Errorf("of the most sockets %+v, %d idle", l, idle)
	}
	d := New(Config{Sockets: 37})
	if most := d.sender.client.Transport.(*http.Transport).MaxIdleConns; d.places.lanes.Places() != 8 || d.places.requestsOf != 2 || most != 2 {
		t.Errorf("%d requests in each lane, %d of an organization, %d idle connections", d.places.lanes.Places(), d.places.requestsOf, most)
	}
}
