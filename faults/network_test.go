package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"remit/redisproc"
)

// network stands between the service and a Redis.
type network struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

func newNetwork(t *testing.T, r *Redis) *network {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", r.Addr)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	return &network{t, proxy}
}

// url returns where the service finds the Redis behind the network.
func (n *network) url() string { return "redis://" + n.proxy.Listen }

// spoil begins what the toxic does, until clear. It is JSON as toxiproxy's interface takes it.
func (n *network) spoil(toxic string) {
	n.t.Helper()
	if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *network) clear() { n.proxy.Toxics.ResetToxics(n.t.Context()) }

const (
	// Redis gets every command, and of a third of the connections no answer comes back.
	repliesLost = `{"name":"lost","type":"timeout","stream":"downstream","toxicity":0.3,"attributes":{"timeout":100}}`
	// A third of the connections are reset, wherever they are.
	resets = `{"name":"reset","type":"reset_peer","stream":"downstream","toxicity":0.3,"attributes":{"timeout":30}}`
	// Every answer takes 200 ± 200 ms.
	latency = `{"name":"slow","type":"latency","stream":"downstream","attributes":{"latency":200,"jitter":200}}`
)

func TestLostRepliesAndResetsChargeNothingTwice(t *testing.T) {
	for name, toxic := range map[string]string{"replies lost": repliesLost, "resets": resets} {
		t.Run(name, func(t *testing.T) {
			redis := StartRedis(t, redisproc.Config{})
			network := newNetwork(t, redis)
			s := New(t, Setup{URL: network.url(), Servers: []string{redis.Addr}})
			for range rounds(2) {
				network.spoil(toxic)
				s.Acknowledged(80)
				network.clear()
				s.FaultOver()
			}
			s.Acknowledged(100)
			if n := s.History.Count(func(c Call) bool { return c.Code == "outcome_unknown" }); n == 0 {
				t.Error("no write was in doubt: no reply was lost")
			}
			s.Finish()
		})
	}
}

// medianCall returns how long half of the calls took that were acknowledged and lie between these times.
func (s *Scenario) medianCall(from, to time.Duration) time.Duration {
	s.t.Helper()
	var took []time.Duration
	for _, c := range s.History.Calls() {
		if c.Outcome == OK && c.Began >= from && c.Ended <= to {
			took = append(took, c.Ended-c.Began)
		}
	}
	if len(took) == 0 {
		s.t.Fatal("no call was acknowledged")
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// A slow network makes calls slow, and nothing else.
func TestASlowNetworkIsEndured(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	network := newNetwork(t, redis)
	s := New(t, Setup{URL: network.url(), Servers: []string{redis.Addr}})
	network.spoil(latency)
	from := s.History.Now()
	s.Acknowledged(rounds(60))
	to := s.History.Now()
	network.clear()
	s.FaultOver()
	s.Acknowledged(100)
	if half := s.medianCall(from, to); half < 100*time.Millisecond {
		t.Errorf("half of the calls took less than %v: the network was not slow", half)
	}
	s.wantAnswered()
	s.Finish()
}
