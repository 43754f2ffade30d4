package webhook

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// deadWays are what receivers do that are no good.
var deadWays = []string{"hang", "hang", "hang", "drip", "drip", "drip", "redirect", "redirect", "endless", "endless"}

// deadReceivers are receivers each of which is dead in its own way until the test ends.
type deadReceivers struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int // requests, by path
}

func newDeadReceivers(t *testing.T) *deadReceivers {
	t.Helper()
	r, done := &deadReceivers{asked: map[string]int{}}, make(chan struct{})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.asked[request.URL.Path]++
		r.mu.Unlock()
		switch request.URL.Path {
		case "/hang":
			<-done
		case "/drip":
			for writeAndFlush(w, []byte{' '}) {
				select {
				case <-done:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		case "/redirect":
			http.Redirect(w, request, "/target", http.StatusTemporaryRedirect)
		case "/endless":
			for writeAndFlush(w, make([]byte, 64<<10)) {
			}
		}
	}))
	t.Cleanup(r.Close)
	t.Cleanup(func() { close(done) })
	return r
}

func writeAndFlush(w http.ResponseWriter, text []byte) bool {
	_, err := w.Write(text)
	return err == nil && http.NewResponseController(w).Flush() == nil
}

// was says how often a path was asked.
func (r *deadReceivers) was(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[path]
}

// Ten of an organization's receivers are no good: they hang, answer a byte at a time, redirect, or never end a body. A request may take an
// hour here, so those that hang or drip do not end while the test runs, and the others can have every event only if nothing that is
// theirs waits for such a request.
func TestTenDeadReceiversDelayNoOther(t *testing.T) {
	t.Parallel()
	dead := newDeadReceivers(t)
	var urls []string
	for _, way := range deadWays {
		urls = append(urls, dead.URL+"/"+way)
	}
	var healthy []*receiver
	for range 32 - len(deadWays) {
		r := newReceiver(t)
		healthy, urls = append(healthy, r), append(urls, r.URL)
	}
	o := newOrganizationWithHooks(t, urls...)
	d := New(Config{Store: o.store, Log: slog.New(slog.DiscardHandler), AllowPrivate: true})
	d.sender.most, d.rates = time.Hour, newRates(machineClock{}, 0)
	run(t, d)
	for round := int64(1); round <= 4; round++ {
		o.happen(t, 25)
		for _, r := range healthy {
			eventually(t, "a healthy receiver is told of everything", func() bool { return r.has(numbers(1, 25*round)...) })
		}
	}
	for _, way := range deadWays {
		eventually(t, "the dead were asked too: "+way, func() bool { return dead.was("/"+way) > 0 })
	}
	if dead.was("/target") > 0 {
		t.Error("a redirect was followed")
	}
	for _, r := range healthy {
		if r.attempts() != 100 {
			t.Errorf("a healthy receiver was asked %d times for 100 events", r.attempts())
		}
	}
}
