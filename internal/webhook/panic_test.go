package webhook

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"remit/test/serviceproc"
)

// faulty panics at its first use.
type faulty struct {
	prometheus.Counter
	http.RoundTripper
	used atomic.Bool
}

func (f *faulty) use() {
	if !f.used.Swap(true) {
		panic("a fault of the program")
	}
}

func (f *faulty) Inc() {
	f.use()
	f.Counter.Inc()
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	f.use()
	return f.RoundTripper.RoundTrip(r)
}

func TestAPanicStopsNoWebhook(t *testing.T) {
	t.Parallel()
	for name, runFailing := range map[string]func(t *testing.T, d *Deliverer){
		"of a loop": func(t *testing.T, d *Deliverer) {
			d.metrics.delivered = &faulty{Counter: d.metrics.delivered}
			run(t, d)
		},
		"of a request": func(t *testing.T, d *Deliverer) {
			d.sender.client.Transport = &faulty{RoundTripper: d.sender.client.Transport}
			run(t, d)
		},
		"of the look at the queue": func(t *testing.T, d *Deliverer) {
			d.mine = nil
			run(t, d)
			eventually(t, "the look panics", func() bool { return valueOf(t, d.metrics.panics) > 0 })
			d.mu.Lock()
			defer d.mu.Unlock()
			d.mine = map[uuid.UUID]bool{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := newReceiver(t), newReceiver(t)
			o := newOrganizationWithHooks(t, one.URL, other.URL)
			o.happen(t, 20)
			log := new(serviceproc.Output)
			d := New(Config{Store: o.store, Log: slog.New(slog.NewTextHandler(log, nil)), AllowPrivate: true})
			runFailing(t, d)
			eventually(t, "all arrive", func() bool { return one.has(numbers(1, 20)...) && other.has(numbers(1, 20)...) })
			o.happen(t, 5)
			eventually(t, "what comes later arrives", func() bool { return one.has(numbers(21, 25)...) && other.has(numbers(21, 25)...) })
			eventually(t, "nothing is left to do", func() bool { return o.isQueueEmpty() && d.busy() == 0 })
			times := int(valueOf(t, d.metrics.panics))
			quick, slow := d.places.lanes.Taken()
			if said := strings.Count(log.String(), "stack="); times < 1 || said != times || quick+slow > 0 {
				t.Errorf("%d panics, logged %d times, places kept: %d", times, said, quick+slow)
			}
		})
	}
}
