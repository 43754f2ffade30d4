package webhook

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// clock is what rates go by.
type clock interface {
	Now() time.Time
	AfterFunc(wait time.Duration, do func())
}

type machineClock struct{}

func (machineClock) Now() time.Time                          { return time.Now() }
func (machineClock) AfterFunc(wait time.Duration, do func()) { time.AfterFunc(wait, do) }

// rates keep the requests of an organization, and those to a host, apart. Nothing is saved up for a burst: so an instance that takes an
// organization over needs to know nothing of what the one before has sent.
type rates struct {
	clock
	apart time.Duration // the least between two requests

	mu    sync.Mutex
	hosts map[string]*hostRate // to which a request began less than that ago, or waits
	begun int                  // requests
}

// pace is the rate of one organization.
type pace struct {
	admitted time.Time     // when its next request may join those that wait for a host
	next     time.Time     // when its next request may begin
	ended    chan struct{} // closed when its requests wait no longer; nil for never
}

// hostRate lets requests to a host begin, of each organization in turn.
type hostRate struct {
	next  time.Time   // when the next request may begin
	queue []*hostTurn // organizations with requests that wait, the next one first
	look  time.Time   // when a timer looks at the queue; zero for none
}

// hostTurn are an organization's requests that wait for a host, in a random order: the organization may wait no longer before all have
// begun, each time, and then none must be the last each time.
type hostTurn struct {
	of      *pace
	waiting []*ticket
}

// ticket is one request that waits.
type ticket struct {
	begin chan struct{} // closed when it may begin
	until time.Time     // when the next one may, of its organization and to its host
}

func newRates(c clock, apart time.Duration) *rates {
	return &rates{clock: c, apart: apart, hosts: map[string]*hostRate{}}
}

// admit returns when a request of an organization may join those that wait for a host, false when ctx or its waiting ends before. Requests
// come to the hosts' queues in their order, so that one to a host where many wait is not overtaken for ever by those to others.
func (r *rates) admit(ctx context.Context, of *pace) bool {
	r.mu.Lock()
	now := r.Now()
	at := later(of.admitted, now)
	of.admitted = at.Add(r.apart)
	r.mu.Unlock()
	if !at.After(now) {
		return ctx.Err() == nil
	}
	come := make(chan struct{})
	r.AfterFunc(at.Sub(now), func() { close(come) })
	return isClosed(ctx, of, come)
}

// turn waits in the queue of the host. It returns nil when ctx or the organization's waiting ends before.
func (r *rates) turn(ctx context.Context, of *pace, host string) *ticket {
	t := &ticket{begin: make(chan struct{})}
	r.mu.Lock()
	h := r.host(host)
	h.add(of, t)
	r.serve(host, h)
	r.mu.Unlock()
	if isClosed(ctx, of, t.begin) {
		return t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !h.remove(of, t) { // it was let begin meanwhile
		r.undo(t, of, host)
	}
	return nil
}

func (r *rates) host(name string) *hostRate {
	h := r.hosts[name]
	if h == nil {
		h = &hostRate{}
		r.hosts[name] = h
	}
	return h
}

// take has a request begin now, if both rates allow that; nil if not.
func (r *rates) take(of *pace, host string) *ticket {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, h := r.Now(), r.host(host)
	defer r.serve(host, h)
	if now.Before(of.next) || now.Before(h.next) {
		return nil
	}
	of.next, h.next = now.Add(r.apart), now.Add(r.apart)
	r.begun++
	return &ticket{until: of.next}
}

// giveBack undoes a turn that was not used, unless another request has begun since.
func (r *rates) giveBack(t *ticket, of *pace, host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.undo(t, of, host)
}

// undo is giveBack for a caller that holds the lock.
func (r *rates) undo(t *ticket, of *pace, host string) {
	r.begun--
	if of.next.Equal(t.until) {
		of.next = time.Time{}
	}
	if h := r.hosts[host]; h != nil && h.next.Equal(t.until) {
		h.next = time.Time{}
	}
}

// serve lets one request begin, if one may, and has the next one looked at when it may. The caller holds the lock.
func (r *rates) serve(host string, h *hostRate) {
	now := r.Now()
	switch {
	case now.Before(h.next):
		r.lookAt(h.next, host, h)
	case h.begin(now, now.Add(r.apart)):
		r.begun++
		r.lookAt(h.next, host, h)
	case len(h.queue) == 0:
		delete(r.hosts, host)
	default:
		r.lookAt(h.earliest(), host, h)
	}
}

// lookAt has the queue served at a time, unless it is served earlier. The caller holds the lock.
func (r *rates) lookAt(at time.Time, host string, h *hostRate) {
	if !h.look.IsZero() && !at.Before(h.look) {
		return
	}
	h.look = at
	r.AfterFunc(at.Sub(r.Now()), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.hosts[host] == h && h.look.Equal(at) { // else an earlier look came, and set others or forgot the host
			h.look = time.Time{}
			r.serve(host, h)
		}
	})
}

// begin starts the first request whose organization may begin one, and sets when the next ones may. Those passed over stay in front.
func (h *hostRate) begin(now, next time.Time) bool {
	for i, turn := range h.queue {
		if now.Before(turn.of.next) {
			continue
		}
		turn.waiting[0].until = next
		close(turn.waiting[0].begin)
		turn.waiting = turn.waiting[1:]
		turn.of.next, h.next = next, next
		if h.queue = slices.Delete(h.queue, i, i+1); len(turn.waiting) > 0 {
			h.queue = append(h.queue, turn)
		}
		return true
	}
	return false
}

// earliest returns when the first of the organizations that wait may begin a request.
func (h *hostRate) earliest() time.Time {
	return slices.MinFunc(h.queue, func(a, b *hostTurn) int { return a.of.next.Compare(b.of.next) }).of.next
}

func (h *hostRate) find(of *pace) int {
	return slices.IndexFunc(h.queue, func(turn *hostTurn) bool { return turn.of == of })
}

func (h *hostRate) add(of *pace, t *ticket) {
	if i := h.find(of); i >= 0 {
		turn := h.queue[i]
		turn.waiting = slices.Insert(turn.waiting, rand.IntN(len(turn.waiting)+1), t)
		return
	}
	h.queue = append(h.queue, &hostTurn{of, []*ticket{t}})
}

// remove forgets a request that waits no longer, and returns whether it did wait.
func (h *hostRate) remove(of *pace, t *ticket) bool {
	i := h.find(of)
	if i < 0 {
		return false
	}
	turn := h.queue[i]
	at := slices.Index(turn.waiting, t)
	if at < 0 {
		return false
	}
	if turn.waiting = slices.Delete(turn.waiting, at, at+1); len(turn.waiting) == 0 {
		h.queue = slices.Delete(h.queue, i, i+1)
	}
	return true
}

// isClosed waits until a request is done with its wait, and returns false when ctx or the organization's waiting ends before.
func isClosed(ctx context.Context, of *pace, done chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-of.ended:
		return false
	case <-done:
		return true
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
