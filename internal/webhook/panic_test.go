package webhook

import (
	"bytes"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

type panickingCounter struct {
	prometheus.Counter
	once *atomic.Bool
}

func (c panickingCounter) Inc() {
	if !c.once.Swap(true) {
		panic("a fault of the program")
	}
	c.Counter.Inc()
}

type panickingTransport struct {
	http.RoundTripper
	once *atomic.Bool
}

func (c panickingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !c.once.Swap(true) {
		panic("a fault of the program")
	}
	return c.RoundTripper.RoundTrip(r)
}

// stacksLogged counts the lines of a log that have a stack.
type stacksLogged struct{ atomic.Int64 }

func (l *stacksLogged) Write(line []byte) (int, error) {
	l.Add(int64(bytes.Count(line, []byte("stack="))))
	return len(line), nil
}

func TestAPanicStopsNoWebhook(t *testing.T) {
	t.Parallel()
	for name, runFailing := range map[string]func(t *testing.T, d *Deliverer){
		"of a loop": func(t *testing.T, d *Deliverer) {
			d.metrics.delivered = panickingCounter{d.metrics.delivered, new(atomic.Bool)}
			run(t, d)
		},
		"of a request": func(t *testing.T, d *Deliverer) {
			d.sender.client.Transport = panickingTransport{d.sender.client.Transport, new(atomic.Bool)}
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
			log := &stacksLogged{}
			d := New(Config{Store: o.store, Log: slog.New(slog.NewTextHandler(log, nil)), AllowPrivate: true})
			runFailing(t, d)
			eventually(t, "all arrive", func() bool { return one.has(numbers(1, 20)...) && other.has(numbers(1, 20)...) })
			o.happen(t, 5)
			eventually(t, "what comes later arrives", func() bool { return one.has(numbers(21, 25)...) && other.has(numbers(21, 25)...) })
			eventually(t, "nothing is left to do", func() bool { return o.isQueueEmpty(t) && d.busy() == 0 })
			times := int64(valueOf(t, d.metrics.panics))
			quick, slow := d.places.lanes.Taken()
			if said := log.Load(); times < 1 || said != times || quick+slow > 0 {
				t.Errorf("%d panics, logged %d times, places kept: %d", times, said, quick+slow)
			}
		})
	}
}
