package bench

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// hookLoad is the size of BenchmarkDeadReceivers.
type hookLoad struct {
	organizations, healthy, others int // receivers of each organization: those that are measured, and those that are dead or not
	perSecond                      int // events, over all organizations
	span                           time.Duration
	rounds                         int
}

// A hundred receivers, of which ten are dead in every second round.
var fullHookLoad = hookLoad{
	organizations: 5, healthy: 18, others: 2, perSecond: 20,
	span: 10 * time.Second, rounds: 5,
}

// BenchmarkDeadReceivers measures how long events take to the healthy of a hundred receivers, while ten are dead and while none is.
func BenchmarkDeadReceivers(b *testing.B) {
	onlyLong(b)
	reportAll(b, besideDeadReceivers(b, fullHookLoad))
}

// besideDeadReceivers alternates rounds in which the others hang with rounds in which they answer.
func besideDeadReceivers(tb testing.TB, load hookLoad) map[string]float64 {
	tb.Helper()
	h := newHooks(tb, load)
	h.round(tb, false) // warms up
	var all, dead, ratios []float64
	for range load.rounds {
		without, with := h.round(tb, false), h.round(tb, true)
		ratios = append(ratios, quantile(0.99, with)/quantile(0.99, without))
		all, dead = append(all, without...), append(dead, with...)
		if testing.Verbose() {
			tb.Logf("p99 %.0f ms with dead receivers, %.0f ms without", quantile(0.99, with), quantile(0.99, without))
		}
	}
	return map[string]float64{
		"p99-x-none-dead": quantile(0.99, dead) / quantile(0.99, all), "median-p99-x-none-dead": median(ratios),
		"p50-x-none-dead": median(dead) / median(all), "p99-ms": quantile(0.99, dead), "none-dead-p99-ms": quantile(0.99, all),
		"deliveries/round": float64(len(dead)) / float64(load.rounds),
	}
}

// hooks are organizations of a program with their receivers, which are in this process.
type hooks struct {
	hookLoad
	service   *service
	keys      []string
	receivers []*httptest.Server // one for each organization, at a host of its own: the requests to a host are bounded
	mu        sync.Mutex
	latencies []float64 // in ms, of the healthy receivers in this round
	otherGot  atomic.Int64
}

func newHooks(tb testing.TB, load hookLoad) *hooks {
	tb.Helper()
	h := &hooks{hookLoad: load, service: startProgram(tb, "REMIT_WEBHOOK_ALLOW_PRIVATE=true")}
	for n := range load.organizations {
		h.keys = append(h.keys, h.service.askAs(tb, "", "/v1/organizations", `{"name":"hooks"}`).Key)
		h.receivers = append(h.receivers, h.receiverAt(tb, fmt.Sprintf("127.0.0.%d", n+1)))
		for range load.healthy {
			h.hook(tb, n, "/healthy")
		}
	}
	return h
}

func (h *hooks) receiverAt(tb testing.TB, host string) *httptest.Server {
	tb.Helper()
	listener := must(net.Listen("tcp", host+":0"))(tb)
	receiver := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(h.receive)}}
	receiver.Start()
	tb.Cleanup(receiver.Close)
	return receiver
}

// hook creates a webhook of the n-th organization for new agents.
func (h *hooks) hook(tb testing.TB, n int, path string) uuid.UUID {
	tb.Helper()
	return h.service.askAs(tb, h.keys[n], "/v1/webhooks", fmt.Sprintf(`{"url":%q,"types":["agent.created"]}`, h.receivers[n].URL+path)).ID
}

// receive notes how long after its change an event came to a healthy receiver. A dead one answers nothing.
func (h *hooks) receive(_ http.ResponseWriter, r *http.Request) {
	var event struct {
		Type string
		At   time.Time `json:"timestamp"` // by the clock of Redis, which is this machine's, to the millisecond
	}
	err := json.NewDecoder(r.Body).Decode(&event)
	switch {
	case event.Type == "webhook.test": // which confirms the webhook, and is not measured
	case r.URL.Path == "/dead":
		h.otherGot.Add(1)
		<-r.Context().Done()
	case r.URL.Path == "/alive":
		h.otherGot.Add(1)
	case err == nil:
		took := float64(time.Since(event.At)) / float64(time.Millisecond)
		h.mu.Lock()
		h.latencies = append(h.latencies, took)
		h.mu.Unlock()
	}
}

// round makes changes for the span, and returns the latencies in ms when every healthy receiver has got all.
func (h *hooks) round(tb testing.TB, dead bool) []float64 {
	tb.Helper()
	path := "/alive"
	if dead {
		path = "/dead"
	}
	h.otherGot.Store(0)
	remove := h.addOthers(tb, path)
	defer remove()
	for n := range h.keys { // so that a request to each of the others is under way, or was answered
		h.change(tb, n)
	}
	h.await(tb, len(h.keys)*h.healthy)
	for deadline := time.Now().Add(time.Minute); h.otherGot.Load() < int64(len(h.keys)*h.others); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("of the other receivers, only %d were asked", h.otherGot.Load())
		}
	}
	changes := int(float64(h.perSecond) * h.span.Seconds())
	for began, n := time.Now(), 0; n < changes; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(h.perSecond))))
		h.change(tb, n)
	}
	return h.await(tb, changes*h.healthy)
}

// change makes the n-th change: an agent of one of the organizations.
func (h *hooks) change(tb testing.TB, n int) {
	tb.Helper()
	h.service.askAs(tb, h.keys[n%len(h.keys)], "/v1/agents", `{"name":"bench","scopes":[]}`)
}

// await returns the latencies when so many deliveries have come to healthy receivers.
func (h *hooks) await(tb testing.TB, deliveries int) (latencies []float64) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if latencies = append(latencies, h.taken()...); len(latencies) >= deliveries {
			return latencies
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%d of %d deliveries came", len(latencies), deliveries)
		}
	}
}

// taken returns the latencies since it was called last.
func (h *hooks) taken() []float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := h.latencies
	h.latencies = nil
	return taken
}

// addOthers creates the other webhooks, and returns what deletes them.
func (h *hooks) addOthers(tb testing.TB, path string) (remove func()) {
	tb.Helper()
	created := map[uuid.UUID]string{}
	for n, key := range h.keys {
		for range h.others {
			created[h.hook(tb, n, path)] = key
		}
	}
	return func() {
		for id, key := range created {
			if status, _ := h.service.send(tb, http.MethodDelete, "/v1/webhooks/"+id.String(), key, ""); status != http.StatusNoContent {
				tb.Errorf("a webhook is deleted with %d", status)
			}
		}
	}
}

// TestDeadReceiversAreMeasured keeps the benchmark working. Durations mean nothing here.
func TestDeadReceiversAreMeasured(t *testing.T) {
	t.Parallel()
	got := besideDeadReceivers(t, hookLoad{organizations: 2, healthy: 3, others: 1, perSecond: 40, span: 250 * time.Millisecond, rounds: 1})
	if got["deliveries/round"] != 30 || got["p99-ms"] <= 0 || got["p99-x-none-dead"] <= 0 {
		t.Errorf("measured %v", got)
	}
}
