package faults

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// FeedSetup says what the agents of an organization whose feed is tested run on, and how fast they change.
type FeedSetup struct {
	URL    string // of Redis, as the instances take it
	Agents int
	Rate   int // changes in a second
}

// Feed is an organization whose agents are changed, steadily, through two instances. A follower reads its feed meanwhile.
type Feed struct {
	Organization string // id
	Instances    []*Instance

	urls     []string // of the instances, which stay when one is replaced
	t        testing.TB
	setup    FeedSetup
	key      string
	agents   []string        // ids
	caller   *Caller         // whose history is not used
	working  context.Context // done: the changers end
	stop     context.CancelFunc
	workers  sync.WaitGroup  // of the changers
	reading  context.Context // done: the follower ends
	quit     context.CancelFunc
	follower sync.WaitGroup

	mu      sync.Mutex
	changes []Change
	refused map[string]int // calls that were not acknowledged, by why
	began   time.Time      // when the changers began
	ended   time.Time      // and ended
	events  []FedEvent
	faults  []string // of what the follower read
}

// Change is a call that was acknowledged, and of which there must be one event.
type Change struct {
	Request string // its id
	Agent   string
	Type    string // of the event
	Ended   time.Time
}

// FedEvent is an event as the follower read it.
type FedEvent struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Agent    string `json:"agent_id"`
	Request  string `json:"request_id"`
	Sequence int64  `json:"seq"`

	Line string    `json:"-"` // its bytes
	Came time.Time `json:"-"`
}

const (
	// feedKept is more events than an agent of a scenario has, so that its trail has all to compare.
	feedKept = "--events-kept=20000"
	// feedPatience is how long the feed may take for the last events of instances that were killed: ten seconds until their
	// entries run out, a minute until calls that they had sent must have come, and the rest for a busy machine.
	feedPatience = 2 * time.Minute
)

// StartFeed starts two instances, creates the organization, and starts its changers and its follower.
func StartFeed(t testing.TB, setup FeedSetup) *Feed {
	t.Helper()
	f := &Feed{t: t, setup: setup, refused: map[string]int{}, caller: NewCaller(NewHistory())}
	f.working, f.stop = context.WithCancel(context.Background())
	f.reading, f.quit = context.WithCancel(context.Background())
	for range 2 {
		i := StartInstance(t, setup.URL, feedKept)
		f.Instances, f.urls = append(f.Instances, i), append(f.urls, i.URL)
	}
	var organization struct {
		ID     string
		APIKey string `json:"api_key"`
	}
	f.must(http.MethodPost, "/v1/organizations", object{"name": "feed"}, &organization)
	f.Organization, f.key = organization.ID, organization.APIKey
	for range setup.Agents {
		var agent struct{ ID string }
		f.must(http.MethodPost, "/v1/agents", object{"name": "agent", "scopes": []string{"read"}}, &agent)
		f.agents = append(f.agents, agent.ID)
	}
	t.Cleanup(func() {
		f.StopChanges()
		f.stopReading()
		f.caller.Close()
	})
	f.follower.Go(f.follow)
	f.startChanges()
	return f
}

func (f *Feed) must(method, path string, body, into any) {
	f.t.Helper()
	if r := f.reader(); !r.do(Request{Method: method, Path: path, Body: body}, into) {
		f.t.Fatalf("%s %s: %v", method, path, r.err)
	}
}

func (f *Feed) reader() *reader { return &reader{caller: f.caller, instance: f.urls[0], key: f.key} }

func (f *Feed) do(instance, method, path, request string, body any) (status int, answer []byte, err error) {
	status, _, answer, err = f.caller.send(instance, Request{Method: method, Path: path, Body: body, APIKey: f.key, ID: request})
	return status, answer, err
}

// KillLeader kills the instance that leads the feed, or the nth if none is seen to lead, and starts another at its address. It
// says whether a leader was killed.
func (f *Feed) KillLeader(n int) bool {
	f.t.Helper()
	victim, leads := n%2, false
	for deadline := time.Now().Add(time.Second); !leads && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for i, url := range f.urls {
			_, metrics, err := f.do(url, http.MethodGet, "/metrics", "", nil)
			if err == nil && strings.Contains(string(metrics), "\nremit_feeds_led 1\n") {
				victim, leads = i, true
				break
			}
		}
	}
	killed := f.Instances[victim]
	killed.Kill()
	f.Instances[victim] = StartInstance(f.t, f.setup.URL, feedKept, "--listen", killed.Listen())
	return leads
}
