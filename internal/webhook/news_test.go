package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"remit/redisstore/webhooks"
)

// A webhook that was created after its siblings began gets what happened before the organization leaves the queue.
func TestAWebhookThatHasYetToBeginKeepsTheQueue(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	o := newOrganizationWithHooks(t, r.URL)
	d := o.newDeliverer(unpaced, machineClock{})
	claim := must(o.store.ClaimWebhooks(t.Context(), o.key.Organization, d.holder, time.Minute))(t)
	c := newClaimed(d, claim)
	o.unconfirmed(t, r.URL) // and then the event, whose waking the claim's next entry covers
	o.happen(t, 1)
	if settled, err := c.settle(t.Context()); settled || err != nil {
		t.Fatalf("settled %t: %v", settled, err)
	}
	c.follow(t.Context())
	eventually(t, "the first webhook rests", func() bool {
		_, quiet := c.quiet()
		return quiet
	})
	c.claim = must(o.store.ClaimWebhooks(t.Context(), o.key.Organization, d.holder, time.Minute))(t)
	if settled, err := c.settle(t.Context()); settled || err != nil {
		t.Errorf("the organization leaves the queue: %v", err)
	}
}

// What an organization decides about a webhook counts for every request that begins later, also of those that are under way.
func TestRequestsThatBeginAfterAChangeFollowIt(t *testing.T) {
	t.Parallel()
	const growing = perTurn * (1 + 2 + 4) // requests until a pass makes maxUnderWay at once
	later := newReceiver(t)
	for name, change := range map[string]func(t *testing.T, o *organizationWithHooks){
		"another URL": func(t *testing.T, o *organizationWithHooks) {
			o.change(t, 0, func(settings *webhooks.Settings) { settings.URL = later.URL })
		},
		"a deletion": func(t *testing.T, o *organizationWithHooks) {
			must(0, o.store.DeleteWebhook(t.Context(), o.key, o.hooks[0].ID))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			goOn := make(chan struct{})
			first := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if asked.Add(1) > growing {
					<-goOn
				}
			}))
			t.Cleanup(first.Close)
			o := newOrganizationWithHooks(t, first.URL)
			o.grow(t, growing+perTurn*maxUnderWay)
			o.deliver(t)
			o.happen(t, 0)
			eventually(t, "requests are under way", func() bool { return asked.Load() == growing+maxUnderWay })
			time.Sleep(settingsHold)
			change(t, o)
			close(goOn)
			eventually(t, "nothing is left to do", o.isQueueEmpty)
			if n := asked.Load(); n > growing+maxUnderWay {
				t.Errorf("%d requests went to the first URL, of which %d had begun before", n, growing+maxUnderWay)
			}
		})
	}
}
