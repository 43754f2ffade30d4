package webhook

import (
	"context"
	"net"
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

// mostInASecond returns how many of the times lie in one second at the most.
func mostInASecond(times []time.Time) (most int) {
	slices.SortFunc(times, time.Time.Compare)
	from := 0
	for i, at := range times {
		for at.Sub(times[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// step moves the clock on if every request that was let begin has come. None begins between the look and the move: it would come later
// than it began.
func (r *receiver) step(c *handClock, paced *rates) {
	paced.mu.Lock()
	if r.attempts() == paced.begun {
		c.advance(usualLimits.apart)
	}
	paced.mu.Unlock()
	c.move(0)
}

// elsewhere returns the URL of another host that passes everything on to the receiver.
func elsewhere(t *testing.T, address string, r *receiver) string {
	t.Helper()
	server := &httptest.Server{Listener: must(net.Listen("tcp", address+":0"))(t), Config: &http.Server{Handler: r.Config.Handler}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// Tests, events and retries of one organization, to two hosts, are a hundred a second. All of them arrive.
func TestAnOrganizationSendsAHundredRequestsASecond(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	r := newReceiver(t)
	r.clock = c
	o := newOrganizationWithHooks(t, r.URL, elsewhere(t, "127.0.0.2", r), r.URL+"/3")
	for range 3 {
		o.unconfirmed(t, r.URL+"/unconfirmed")
	}
	r.refuses(func(number int64) bool { return number == 7 })
	d := o.newDeliverer(usualLimits, c)
	run(t, d)
	o.happen(t, 20)
	arrived := func(want int) func() bool {
		return func() bool {
			r.step(c, d.rates)
			tests, events := r.total()
			return tests == 3 && events == want
		}
	}
	eventually(t, "all but one arrive everywhere", arrived(6*19))
	for i := range o.hooks {
		eventually(t, "its failure is noted", func() bool {
			r.step(c, d.rates)
			return len(o.deliveries(t, i, webhooks.DeliveryPending)) == 1
		})
	}
	r.refuses(func(int64) bool { return false })
	for _, w := range o.hooks {
		eventually(t, "it is sent again, though its own retry may be noted meanwhile", func() bool {
			_, err := o.store.SendAgain(t.Context(), o.key, w.ID, webhooks.DeliveryID(w.ID, 7), time.Now())
			if err != nil && err != redisstore.ErrChangedMeanwhile {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	eventually(t, "the last one arrives everywhere", arrived(6*20))
	if times := r.came(); mostInASecond(times) > 100 {
		t.Errorf("%d requests in a second, of %d", mostInASecond(times), len(times))
	}
}

// A host gets a hundred requests a second of all organizations together, at whichever of its ports.
func TestAHostReceivesAHundredRequestsASecond(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	r := newReceiver(t)
	r.clock = c
	o := newOrganizationWithHooks(t, r.URL)
	others := []*organizationWithHooks{o, o.another(t, elsewhere(t, "127.0.0.1", r)), o.another(t, r.URL)}
	d := o.newDeliverer(usualLimits, c)
	run(t, d)
	for _, one := range others {
		one.happen(t, 40)
	}
	eventually(t, "all arrive", func() bool {
		r.step(c, d.rates)
		_, events := r.total()
		return events == 120
	})
	if times := r.came(); mostInASecond(times) > 100 {
		t.Errorf("%d requests in a second", mostInASecond(times))
	}
}

// An organization whose rate is used up delays no other, though there is a place for one request only.
func TestARequestThatWaitsForItsRateKeepsNoPlace(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	paced, other := newReceiver(t), newReceiver(t)
	o := newOrganizationWithHooks(t, paced.URL)
	second := o.another(t, elsewhere(t, "127.0.0.2", other))
	l := usualLimits
	l.requests = 1
	d := o.newDeliverer(l, c)
	run(t, d)
	o.happen(t, 50)
	eventually(t, "one request begins", func() bool { return paced.has(1) })
	second.happen(t, 1)
	eventually(t, "the other receives", func() bool { return other.has(1) })
	wantEqual(t, "requests while the clock stood", paced.attempts(), 1)
}

// ask has so many requests wait for a host, all at once, and returns how many of them have begun.
func (r *rates) ask(t *testing.T, of *pace, host string, requests int) (begun *atomic.Int64) {
	t.Helper()
	var under sync.WaitGroup
	begun = new(atomic.Int64)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); under.Wait() })
	for range requests {
		under.Go(func() {
			if r.turn(ctx, of, host) != nil {
				begun.Add(1)
			}
		})
	}
	return begun
}

// waits says how many requests of organizations wait for a host.
func (r *rates) waits(host string) (requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.hosts[host]; h != nil {
		for _, turn := range h.queue {
			requests += len(turn.waiting)
		}
	}
	return requests
}

// However many requests of one organization wait for a host, another one's is the next but one.
func TestOrganizationsTakeTurnsAtAHost(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	r := newRates(c, usualLimits.apart)
	many := r.ask(t, &pace{}, "host", 41)
	eventually(t, "one begins and the others wait", func() bool { return many.Load() == 1 && r.waits("host") == 40 })
	one := r.ask(t, &pace{}, "host", 1)
	eventually(t, "it waits", func() bool { return r.waits("host") == 41 })
	c.move(2 * usualLimits.apart)
	eventually(t, "both have begun another", func() bool { return one.Load() == 1 && many.Load() == 2 })
	c.move(100 * usualLimits.apart)
	eventually(t, "all begin", func() bool { return many.Load() == 41 })
	if r.mu.Lock(); len(r.hosts) != 0 {
		t.Errorf("%d hosts are remembered", len(r.hosts))
	}
	r.mu.Unlock()
}

// A host at which an organization waits for its own rate serves the others meanwhile.
func TestAnOrganizationsRateDelaysNoOtherAtAHost(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	r := newRates(c, usualLimits.apart)
	busy := r.ask(t, &pace{next: c.Now().Add(time.Minute)}, "host", 1)
	eventually(t, "it waits", func() bool { return r.waits("host") == 1 })
	other := r.ask(t, &pace{}, "host", 3)
	eventually(t, "one of the others begins", func() bool { return other.Load() == 1 && r.waits("host") == 3 })
	c.move(time.Minute - time.Millisecond)
	eventually(t, "the others begin", func() bool { return other.Load() == 3 && busy.Load() == 0 })
	c.move(time.Millisecond)
	eventually(t, "it begins", func() bool { return busy.Load() == 1 })
}

func TestARequestThatIsGivenUpKeepsNoTurn(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	r := newRates(c, usualLimits.apart)
	of := &pace{}
	first := r.turn(t.Context(), of, "host")
	if first == nil || r.take(&pace{}, "host") != nil || r.take(&pace{}, "another") == nil {
		t.Fatal("a turn is not the host's")
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if r.turn(ended, &pace{}, "host") != nil || r.waits("host") != 0 {
		t.Error("a request that ended waits")
	}
	r.giveBack(first, of, "host")
	c.move(time.Millisecond)
	if r.take(of, "host") == nil {
		t.Error("a turn that was given back is taken")
	}
	r.giveBack(first, of, "host")
	wantEqual(t, "a turn that is given back twice", r.take(of, "host"), nil)
}

// A request that is let begin in the moment in which its organization's waiting ends gives its turn back, or uses it.
func TestAWaitThatEndsLosesNoTurn(t *testing.T) {
	t.Parallel()
	c := newHandClock()
	r := newRates(c, usualLimits.apart)
	of := &pace{ended: make(chan struct{})}
	close(of.ended)
	for range 100 {
		if turn := r.turn(t.Context(), of, "host"); turn != nil {
			r.giveBack(turn, of, "host")
		}
		other := &pace{}
		if r.begun != 0 || r.waits("host") != 0 || !of.next.IsZero() || r.take(other, "host") == nil {
			t.Fatalf("%d begun, %d wait", r.begun, r.waits("host"))
		}
		r.giveBack(&ticket{until: other.next}, other, "host")
	}
	r.take(&pace{}, "host")
	of.admitted = c.Now().Add(time.Minute)
	if r.admit(t.Context(), of) || r.turn(t.Context(), of, "host") != nil || r.waits("host") != 0 {
		t.Error("it waits on")
	}
	c.move(time.Second)
	wantEqual(t, "hosts that are remembered", len(r.hosts), 0)
}

// None of an organization's requests is the last in each of its turns.
func TestTheRequestsOfAnOrganizationWaitInRandomOrder(t *testing.T) {
	t.Parallel()
	first := 0
	for range 1000 {
		h, of, late := &hostRate{}, &pace{}, &ticket{}
		h.add(of, &ticket{})
		h.add(of, &ticket{})
		if h.add(of, late); h.queue[0].waiting[0] == late {
			first++
		}
	}
	if first == 0 || first == 1000 {
		t.Errorf("the last of three is the first %d times of 1000", first)
	}
}

// An organization whose requests waited long for their host is slow, whether they began or not. Its webhook is not.
func TestALongWaitForAHostMakesAnOrganizationSlow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		moves time.Duration // the host is busy for 3 s
		slow  bool
	}{
		"begun": {3 * time.Second, true}, "given up": {2 * time.Second, true}, "given up soon": {time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newHandClock()
			r := newReceiver(t)
			o := newOrganizationWithHooks(t, r.URL)
			other := o.another(t, r.URL)
			l := usualLimits
			l.organizations, l.turn = 1, 100*time.Millisecond
			d := o.newDeliverer(l, c)
			d.rates.host("127.0.0.1").next = c.Now().Add(3 * time.Second)
			run(t, d)
			o.happen(t, 1)
			eventually(t, "it waits", func() bool { return d.rates.waits("127.0.0.1") == 1 })
			c.move(test.moves)
			other.happen(t, 1)
			eventually(t, "the other has the place", func() bool { return !d.has(o) && d.has(other) })
			if d.places.isSlow(o.key.Organization) != test.slow || d.places.isSlow(o.hooks[0].ID) {
				t.Errorf("its organization is slow: %v; its webhook: %v", !test.slow, d.places.isSlow(o.hooks[0].ID))
			}
			eventually(t, "it arrives, at its first attempt", func() bool {
				c.move(time.Second)
				done := o.deliveries(t, 0, webhooks.DeliveryDelivered)
				return r.attempts() == 2 && len(done) == 1 && done[0].Attempts == 1
			})
		})
	}
}

// has says whether it delivers for an organization now.
func (d *Deliverer) has(o *organizationWithHooks) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, mine := d.mine[o.key.Organization]
	return mine
}
