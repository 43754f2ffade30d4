package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"remit/redisstore"
	"remit/redisstore/webhooks"
)

// receiver is what a webhook tells.
type receiver struct {
	*httptest.Server
	clock  clock // of the rates, where their tests look at it
	mu     sync.Mutex
	times  []time.Time   // when each request came, by the clock
	got    map[int64]int // how often it accepted each event; 0 is the test event
	ids    map[string]int64
	kept   map[string]bool // ids that it accepted
	refuse func(number int64) bool
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{clock: machineClock{}, got: map[int64]int{}, ids: map[string]int64{}, kept: map[string]bool{}}
	r.refuses(func(int64) bool { return false })
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var event struct {
			Timestamp string `json:"timestamp"`
			Data      struct {
				Seq int64 `json:"seq"`
			} `json:"data"`
		}
		if err != nil || json.Unmarshal(body, &event) != nil || event.Timestamp == "" {
			t.Errorf("a body of %q", body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.times = append(r.times, r.clock.Now())
		id, number, signed := request.Header.Get("webhook-id"), event.Data.Seq, http.Header{}
		seconds, _ := strconv.ParseInt(request.Header.Get("webhook-timestamp"), 10, 64)
		Sign(signed, id, time.Unix(seconds, 0), body, [][]byte{[]byte("secret")})
		if request.Header.Get("webhook-signature") != signed.Get("webhook-signature") || time.Since(time.Unix(seconds, 0)) > time.Minute {
			t.Errorf("%s has another signature: %v", id, request.Header)
		}
		if known, found := r.ids[id]; found && known != number {
			t.Errorf("%s stands for events %d and %d", id, known, number)
		}
		r.ids[id] = number
		if r.refuse(number) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.got[number]++
		r.kept[id] = true
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) refuses(refuse func(int64) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

func (r *receiver) has(numbers ...int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(numbers, func(n int64) bool { return r.got[n] == 0 })
}

func (r *receiver) came() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.times)
}

func (r *receiver) attempts() int { return len(r.came()) }

// organizationWithHooks is an organization with a webhook for each receiver, and a feed.
type organizationWithHooks struct {
	redis  *miniredis.Miniredis
	store  *redisstore.Store
	key    redisstore.APIKey
	hooks  []webhooks.Webhook
	newest int64 // event of the feed
}

func (o *organizationWithHooks) feedKey(kind string) string {
	organization := o.key.Organization.String()
	return "remit:" + kind + ":{" + organization[len(organization)-4:] + "}:" + organization
}

// grow adds events to the feed without waking a deliverer.
func (o *organizationWithHooks) grow(t *testing.T, count int64) {
	t.Helper()
	for range count {
		o.newest++
		eventType, number := "session.created", strconv.FormatInt(o.newest, 10)
		if o.newest%2 == 0 {
			eventType = "session.ended"
		}
		event := `{"seq":` + number + `,"occurred_at":"2026-11-21T08:20:00.120Z"}`
		must(o.redis.XAdd(o.feedKey("oe"), number+"-0", []string{"y", eventType, "e", event}))(t)
	}
	o.redis.HSet(o.feedKey("oeh"), "n", strconv.FormatInt(o.newest, 10))
}

func newOrganizationWithHooks(t *testing.T, urls ...string) *organizationWithHooks {
	t.Helper()
	redis := miniredis.RunT(t)
	store := must(redisstore.Open(redisstore.Config{URL: "redis://" + redis.Addr()}))(t)
	t.Cleanup(func() { _ = store.Close() })
	return (&organizationWithHooks{redis: redis, store: store}).another(t, urls...)
}

func (o *organizationWithHooks) another(t *testing.T, urls ...string) *organizationWithHooks {
	t.Helper()
	o = &organizationWithHooks{redis: o.redis, store: o.store, key: redisstore.APIKey{Organization: redisstore.NewRootID(), Hash: [32]byte{1}}}
	must(o.store.CreateOrganization(t.Context(), "", o.key, "acme", "", nil))(t)
	for _, url := range urls {
		o.hook(t, url)
	}
	return o
}

// hook creates a webhook that is confirmed.
func (o *organizationWithHooks) hook(t *testing.T, url string, types ...string) {
	t.Helper()
	o.unconfirmed(t, url, types...)
	o.confirm(t, o.hooks[len(o.hooks)-1])
}

func (o *organizationWithHooks) unconfirmed(t *testing.T, url string, types ...string) {
	t.Helper()
	id := redisstore.NewID(o.key.Organization)
	settings := webhooks.Settings{URL: url, Types: types, Secrets: []webhooks.Secret{SealSecret(nil, id, []byte("secret"))}}
	w := must(o.store.CreateWebhook(t.Context(), o.key, id, settings, nil))(t)
	o.hooks = append(o.hooks, w)
}

// confirm notes that a webhook's receiver has accepted its test.
func (o *organizationWithHooks) confirm(t *testing.T, w webhooks.Webhook) {
	t.Helper()
	report := webhooks.DeliveryReport{Webhook: w.ID, Found: w.Progress, Reached: w.Progress}
	report.Reached.Tested, report.Reached.Confirmed = w.Settings.URLVersion, time.Now()
	claim := must(o.store.ClaimWebhooks(t.Context(), o.key.Organization, redisstore.NewRootID(), termLength))(t)
	must(o.store.NoteDeliveries(t.Context(), claim, report))(t)
	must(0, o.store.ReleaseWebhooks(t.Context(), claim))(t)
}

// unpaced are the usual limits without the rates, which have tests of their own.
var unpaced = func() limits {
	l := usualLimits
	l.apart = 0
	return l
}()

func (o *organizationWithHooks) deliver(t *testing.T) (d *Deliverer, stop func()) {
	t.Helper()
	return o.deliverWithin(t, unpaced)
}

func (o *organizationWithHooks) deliverWithin(t *testing.T, l limits) (d *Deliverer, stop func()) {
	t.Helper()
	d = o.newDeliverer(l, machineClock{})
	return d, run(t, d)
}

func (o *organizationWithHooks) newDeliverer(l limits, c clock) *Deliverer {
	d := New(Config{Store: o.store, Log: slog.New(slog.DiscardHandler), AllowPrivate: true})
	d.places, d.rates = newPlaces(l), newRates(c, l.apart)
	return d
}

// run runs a deliverer until the test ends, or what it returns is called.
func run(t *testing.T, d *Deliverer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var under sync.WaitGroup
	under.Go(func() { d.Run(ctx) })
	stop = func() {
		cancel()
		under.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// happen adds events to the feed, as the feed's leader does.
func (o *organizationWithHooks) happen(t *testing.T, count int64) {
	t.Helper()
	o.grow(t, count)
	must(0, o.store.WakeWebhooks(t.Context(), o.key.Organization, 0))(t)
}

func (o *organizationWithHooks) deliveries(t *testing.T, hook int, status redisstore.Status) []webhooks.Delivery {
	t.Helper()
	all := must(o.store.Deliveries(t.Context(), o.key, o.hooks[hook].ID))(t)
	return slices.DeleteFunc(all, func(d webhooks.Delivery) bool { return d.Status != status })
}

func (o *organizationWithHooks) isQueueEmpty() bool { return !o.redis.Exists("remit:wq") }

func numbers(from, to int64) []int64 {
	var all []int64
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

func TestEveryWantedEventArrivesOnceAndThenNothingIsLookedAt(t *testing.T) {
	t.Parallel()
	all, some := newReceiver(t), newReceiver(t)
	o := newOrganizationWithHooks(t, all.URL)
	o.grow(t, 3) // before the second one
	o.hook(t, some.URL, "session.ended")
	o.deliver(t)
	o.happen(t, 297)
	eventually(t, "all arrive", func() bool { return all.has(numbers(1, 300)...) && some.has(4, 300) })
	eventually(t, "the queue is empty", o.isQueueEmpty)
	o.happen(t, 2)
	eventually(t, "what comes later arrives", func() bool { return all.has(301, 302) && some.has(302) })
	if _, events := some.total(); events != 150 || all.attempts() != 302 || some.attempts() != 150 {
		t.Errorf("%d requests for all, and %d for %d events", all.attempts(), some.attempts(), events)
	}
}

func TestWhatIsRefusedForADayIsGivenUpAndCanBeSentByHand(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.refuses(func(n int64) bool { return n == 2 })
	o := newOrganizationWithHooks(t, r.URL)
	at := time.Now()
	o.redis.SetTime(at)
	d, _ := o.deliver(t)
	o.happen(t, 3)
	o.wantMetric(t, "two are delivered", d.metrics.delivered, 2)
	o.wantMetric(t, "one failed", d.metrics.failed, 1)
	o.redis.SetTime(at.Add(25 * time.Hour))
	o.wantMetric(t, "it is given up", d.metrics.dead, 1)
	o.wantMetric(t, "the organization rests", d.metrics.organizations, 0)
	collected := make(chan prometheus.Metric, 10)
	d.Collect(collected)
	wantEqual(t, "series", len(collected), 7)
	all := o.deliveries(t, 0, webhooks.DeliveryDead)
	if dead := all[0]; len(all) != 1 || dead.Event != 2 || dead.Answer != 503 || dead.Error == "" || dead.Attempts != 2 || !dead.Next.IsZero() {
		t.Errorf("given up as %+v", all)
	}
	r.refuses(func(int64) bool { return false })
	must(o.store.SendAgain(t.Context(), o.key, o.hooks[0].ID, all[0].ID, at))(t)
	eventually(t, "it arrives", func() bool { return r.has(2) })
	must(o.store.SendTest(t.Context(), o.key, o.hooks[0].ID, nil, at))(t)
	eventually(t, "a test arrives", func() bool { return r.has(0) })
}

func TestEventsThatAreNoLongerKeptAreCounted(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	o := newOrganizationWithHooks(t, r.URL)
	o.grow(t, 7)
	o.redis.Del(o.feedKey("oe"))
	o.grow(t, 3)
	d, _ := o.deliver(t)
	o.happen(t, 0)
	eventually(t, "those that are kept arrive", func() bool { return r.has(8, 9, 10) })
	o.wantMetric(t, "the others are metered", d.metrics.missed, 7)
	eventually(t, "the others are counted", func() bool {
		w, err := o.store.Webhook(t.Context(), o.key, o.hooks[0].ID)
		return err == nil && w.Progress.Missed == 7
	})
}

func TestASecretThatCannotBeOpenedSendsNothing(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	o := newOrganizationWithHooks(t, r.URL)
	o.change(t, 0, func(settings *webhooks.Settings) {
		settings.Secrets[0].Sealed = "sealed:" + base64.StdEncoding.EncodeToString(make([]byte, 60))
	})
	o.deliver(t)
	o.happen(t, 1)
	eventually(t, "it is noted", func() bool {
		waits := o.deliveries(t, 0, webhooks.DeliveryPending)
		return len(waits) == 1 && waits[0].Error == cannotOpen
	})
	wantEqual(t, "requests", r.attempts(), 0)
}
