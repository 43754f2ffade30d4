package faults

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"remit/test/serviceproc"
)

const (
	// holdTime is the shortest that a hold of a gateway can be. It is renewed at half of it.
	holdTime = 10 * time.Second
	// stopTime is how long a gateway that stops waits for its calls.
	stopTime = 2 * time.Second
	// meteringPatience is how long all calls may take, on a busy machine.
	meteringPatience = 10 * time.Minute
)

// Gateway is a process of the gateway.
type Gateway struct {
	*serviceproc.Service
	fate   fate
	atRest int // goroutines, before its first call
}

const goroutines = "go_goroutines"

// fate is how a gateway has ended, from what it promises of calls then in progress.
type fate string

// The fates.
const (
	drained fate = ""       // it has ended its calls
	cut     fate = "cut"    // it had to break calls off, and has settled them
	killed  fate = "killed" // it has settled none
)

var badOutput = regexp.MustCompile(`DATA RACE|panic:|a request panicked|cost more than was held`)

// config is that of a gateway.
func (m *Metering) config() string {
	text := fmt.Sprintf("listen: 127.0.0.1:0\nprices: prices.json\nhold_seconds: %d\nstop_seconds: %d\ndrain_seconds: 300\nidle_seconds: 300\n"+
		"upstreams:\n", int(holdTime.Seconds()), int(stopTime.Seconds()))
	for n, t := range m.tenants {
		for protocol, base := range map[string]string{"openai": t.server.URL + "/v1", "anthropic": t.server.URL} {
			text += fmt.Sprintf("  - {name: %s-%d, protocol: %s, base_url: %q, key_file: key, organizations: [%q]}\n", protocol, n, protocol, base, t.id)
		}
	}
	return text
}

// start starts a gateway in a place. It has an address of its own: a call that is meant for the gateway before it must not reach it, or that
// one's fate would not be the call's.
func (m *Metering) start(place int) {
	t := m.s.t
	t.Helper()
	service, err := serviceproc.LaunchGateway(t.TempDir(), map[string]string{
		serviceproc.GatewayConfig: m.config(), "prices.json": priceTable(), "key": "sk-of-the-provider",
	}, "REMIT_REDIS_URL="+m.s.setup.URL, "REMIT_RATE_LIMITS=off", "GORACE=halt_on_error=1", "GOMEMLIMIT=900MiB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		service.Kill()
		if badOutput.MatchString(service.Output()) {
			t.Errorf("the gateway at %s printed:\n%s", service.URL, service.Output())
		}
	})
	g := &Gateway{Service: service}
	g.atRest = m.gauge(g, goroutines)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gateways[place] = g
}

// at returns the gateway that runs in a place.
func (m *Metering) at(place int) *Gateway {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gateways[place]
}

// KillGateway kills a gateway in the middle of a call whose answer has begun, and starts another.
func (m *Metering) KillGateway(place int) {
	m.s.t.Helper()
	g := m.at(place)
	m.hang(g)
	g.Kill()
	g.fate = killed
	m.start(place)
}

// StopGateway sends a gateway SIGTERM, and starts another when it has ended. If one of its calls hangs, it must cut that.
func (m *Metering) StopGateway(place int, hangs bool) {
	m.s.t.Helper()
	g := m.at(place)
	if hangs {
		m.hang(g)
	}
	m.stop(g)
	if hangs && g.fate != cut {
		m.s.t.Errorf("the gateway at %s has not cut a call that hangs: %s", g.URL, g.Output())
	}
	m.start(place)
}

func (m *Metering) stop(g *Gateway) {
	m.s.t.Helper()
	if err := g.Stop(); err != nil {
		m.s.t.Errorf("SIGTERM: %v", err)
	}
	for line := range strings.Lines(g.Output()) {
		if strings.Contains(line, "was not settled") {
			m.s.t.Logf("the gateway at %s: %s", g.URL, line)
		}
	}
	if strings.Contains(g.Output(), "the stop cuts calls") {
		g.fate = cut
	}
}

// gauge returns the value of a metric of a gateway, -1 if it cannot be read.
func (m *Metering) gauge(g *Gateway, name string) int {
	answer, err := (&http.Client{Transport: &m.wire, Timeout: callLimit}).Get(g.URL + "/metrics")
	if err != nil {
		return -1
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	found := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindSubmatch(text)
	if found == nil {
		return -1
	}
	value, _ := strconv.Atoi(string(found[1]))
	return value
}
