package service

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"remit/test/serviceproc"
)

// hooked is an organization of a running service, whose webhooks are looked at.
type hooked struct {
	*serviceproc.Caller
	key map[string]string
}

func newHooked(t *testing.T, url string) hooked {
	t.Helper()
	h := hooked{&serviceproc.Caller{T: t, URL: url, Kept: map[string]string{}}, map[string]string{}}
	h.Keep("API key", "api_key", "/v1/organizations", nil, `{"name":"acme"}`)
	h.key["X-API-Key"] = h.Kept["API key"]
	return h
}

// create creates a webhook for new agents, which gets a test by itself, and returns its path.
func (h hooked) create(url string) string {
	h.T.Helper()
	body := fmt.Sprintf(`{"url":%q,"types":["agent.created"]}`, url)
	return "/v1/webhooks/" + fmt.Sprint(h.Keep("webhook's secret", "secret", "/v1/webhooks", h.key, body)["id"])
}

// delivery is what the service shows of one.
type delivery struct {
	Status string `json:"status"`
	Error  string `json:"error"`
}

func (h hooked) deliveries(path string) (all []delivery) {
	h.T.Helper()
	request, err := http.NewRequest(http.MethodGet, h.URL+path+"/deliveries?limit=100", nil)
	if err != nil {
		h.T.Fatal(err)
	}
	request.Header.Set("X-API-Key", h.key["X-API-Key"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		h.T.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		h.T.Fatal(err)
	}
	return all
}

// failure waits until the test has failed, and returns why.
func (h hooked) failure(path string) (cause string) {
	h.T.Helper()
	waitFor(h.T, func() bool {
		if found := h.deliveries(path); len(found) == 1 {
			cause = found[0].Error
		}
		return cause != ""
	})
	return cause
}

// newCountingListener returns the port of a listener, and how many connections it was made.
func newCountingListener(t *testing.T) (port string, made *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	made = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			made.Add(1)
			_ = conn.Close()
		}
	}()
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port), made
}

// hasCgo says whether the program can resolve by libc.
func hasCgo() bool {
	info, _ := debug.ReadBuildInfo()
	for _, setting := range info.Settings {
		if setting.Key == "CGO_ENABLED" {
			return setting.Value == "1"
		}
	}
	return false
}

// The running service connects to no private address, however a webhook's URL spells it. The resolver of libc takes 127.1,
// decimal, octal and hexadecimal numbers for addresses, which are then refused as what they are. Go's own resolver finds no
// such name, and asks no server. What needs a resolver that lies (a rebound name) is in package webhook, which can be given one.
func TestTheServiceConnectsToNoPrivateAddress(t *testing.T) {
	t.Parallel()
	const notPublic = "the host has no public address" // said also of names that do not exist: who asks must not learn which do
	addresses := []string{
		"127.0.0.1", "localhost", "0.0.0.0", "169.254.169.254", "10.0.0.1", "192.168.0.1", "[::1]", "[::]", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[fd00:ec2::254]",
	}
	numbers := []string{"127.1", "2130706433", "017700000001", "0177.0.0.1", "127.000.000.001"}
	hexadecimal := []string{"0x7f000001", "0x7f.0.0.1"} // Go's resolver would ask a server for these names
	for resolver, causes := range map[string]map[string][]string{
		"go":  {notPublic: append(addresses[:len(addresses):len(addresses)], numbers...)},
		"cgo": {notPublic: append(append(addresses[:len(addresses):len(addresses)], numbers...), hexadecimal...)},
	} {
		if resolver == "cgo" && !hasCgo() {
			continue
		}
		t.Run(resolver, func(t *testing.T) {
			t.Parallel()
			port, made := newCountingListener(t)
			h := newHooked(t, start(t, []string{"GODEBUG=netdns=" + resolver}).ready(t).url)
			want := map[string]string{} // by webhook
			for cause, hosts := range causes {
				for _, host := range hosts {
					want[h.create("https://"+host+":"+port+"/")] = host + ": " + cause
				}
			}
			for path, cause := range want {
				host, _, _ := strings.Cut(cause, ": ")
				if got := host + ": " + h.failure(path); got != cause {
					t.Errorf("%s, want %s", got, cause)
				}
			}
			if made.Load() > 0 {
				t.Errorf("it made %d connections", made.Load())
			}
		})
	}
}

// Where private addresses are allowed, the same listener is connected to: the test above would see it.
func TestTheServiceConnectsToAPrivateAddressWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	port, made := newCountingListener(t)
	h := newHooked(t, start(t, []string{"REMIT_WEBHOOK_ALLOW_PRIVATE=true"}).ready(t).url)
	if cause := h.failure(h.create("https://127.0.0.1:" + port + "/")); cause != "the connection failed" || made.Load() == 0 {
		t.Errorf("%q after %d connections", cause, made.Load())
	}
}

// What a receiver sends after its answer, unasked, does not reach the service's log, where it would pass for the service's words.
func TestAReceiverWritesNothingIntoTheLog(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			time.Sleep(200 * time.Millisecond) // until the connection is idle
			_, _ = io.WriteString(conn, strings.Repeat("forged line\n", 100))
		}
		_, _ = io.Copy(io.Discard, conn) // until the service has noticed, and closes
		_ = conn.Close()
	}()
	p := start(t, []string{"REMIT_WEBHOOK_ALLOW_PRIVATE=true", "REMIT_LOG_LEVEL=debug"}).ready(t)
	h := newHooked(t, p.url)
	h.create("http://" + listener.Addr().String() + "/")
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the service keeps a connection on which it was sent what it had not asked for")
	}
	waitFor(t, func() bool { return strings.Contains(p.Stderr(), "a library wrote a line") })
	if log := p.Stderr(); strings.Contains(log, "forged") {
		t.Errorf("the log has what the receiver sent:\n%s", log)
	}
}

// sleeper is a receiver that refuses everything until it wakes.
type sleeper struct {
	url   string
	awake atomic.Bool
	asked atomic.Int64
	mu    sync.Mutex
	told  map[string]bool // agents that it accepted
}

func newSleeper(t *testing.T) *sleeper {
	t.Helper()
	s := &sleeper{told: map[string]bool{}}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var event struct {
			Type string `json:"type"`
			Data struct {
				Agent string `json:"agent_id"`
			} `json:"data"`
		}
		if err != nil || json.Unmarshal(body, &event) != nil || event.Data.Agent == "" && event.Type != "webhook.test" {
			t.Errorf("a body of %q", body)
		}
		if event.Type == "webhook.test" {
			return
		}
		if s.asked.Add(1); !s.awake.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told[event.Data.Agent] = true
	}))
	t.Cleanup(receiver.Close)
	s.url = receiver.URL
	return s
}

func (s *sleeper) has(agents []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, agent := range agents {
		if !s.told[agent] {
			return false
		}
	}
	return true
}

// newFastClock returns a Redis whose clock goes as this machine's, and a function that moves it on. The service knows no other
// clock for deliveries, so that a day passes for the program as it stands.
func newFastClock(t *testing.T) (redis *miniredis.Miniredis, pass func(time.Duration)) {
	t.Helper()
	redis = miniredis.RunT(t)
	var ahead atomic.Int64
	ticker, done := time.NewTicker(20*time.Millisecond), make(chan struct{})
	var under sync.WaitGroup
	under.Go(func() {
		for {
			select {
			case <-ticker.C:
				redis.SetTime(time.Now().Add(time.Duration(ahead.Load())))
			case <-done:
				return
			}
		}
	})
	t.Cleanup(func() {
		ticker.Stop()
		close(done)
		under.Wait()
	})
	return redis, func(d time.Duration) { ahead.Add(int64(d)) }
}

// A receiver that refuses everything for 23 hours is asked again all the time, and gets everything soon after it is back.
func TestAReceiverThatWasDownFor23HoursGetsEverythingFromTheService(t *testing.T) {
	t.Parallel()
	redis, pass := newFastClock(t)
	h := newHooked(t, start(t, []string{"REMIT_REDIS_URL=redis://" + redis.Addr(), "REMIT_WEBHOOK_ALLOW_PRIVATE=true"}).ready(t).url)
	receiver := newSleeper(t)
	hook := h.create(receiver.url)
	var agents []string
	happen := func() {
		t.Helper()
		before := receiver.asked.Load()
		for range 3 {
			agents = append(agents, fmt.Sprint(h.Keep("secret", "secret", "/v1/agents", h.key, `{"name":"scout","scopes":[]}`)["id"]))
		}
		waitFor(t, func() bool { return receiver.asked.Load() > before })
	}
	happen()
	for _, hours := range []time.Duration{1, 1, 2, 4, 4, 4, 4, 3} { // 23
		pass(hours * time.Hour)
		happen()
	}
	if receiver.has(agents[:1]) {
		t.Fatal("the receiver was not down")
	}
	receiver.awake.Store(true)
	pass(time.Hour - time.Minute) // the longest pause between two attempts
	waitFor(t, func() bool { return receiver.has(agents) })
	waitFor(t, func() bool {
		for _, d := range h.deliveries(hook) {
			if d.Status != "delivered" {
				return false
			}
		}
		return true
	})
	if _, hook := h.Call(http.MethodGet, hook, h.key, ""); hook["failing_since"] != nil || fmt.Sprint(hook["missed_events"]) != "0" || hook["confirmed_at"] == nil {
		t.Errorf("the webhook is %v", hook)
	}
}
