//go:build long

package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"remit/internal/redisproc"
)

// network is a proxy between the service and a Redis.
type network struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

func newNetwork(t *testing.T, r *Redis) *network {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", r.Addr)
	must(0, proxy.Start())(t)
	t.Cleanup(proxy.Stop)
	return &network{t, proxy}
}

func (n *network) url() string { return "redis://" + n.proxy.Listen }

// add applies a toxic until clear. The toxic is JSON as in the API of toxiproxy.
func (n *network) add(toxic string) {
	n.t.Helper()
	must(n.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)))(n.t)
}

func (n *network) clear() { n.proxy.Toxics.ResetToxics(n.t.Context()) }

const (
	// Redis gets every command, but on a third of the connections no reply returns.
	repliesLost = `{"name":"lost","type":"timeout","stream":"downstream","toxicity":0.3,"attributes":{"timeout":100}}`
	// A third of the connections are reset at any point.
	resets = `{"name":"reset","type":"reset_peer","stream":"downstream","toxicity":0.3,"attributes":{"timeout":30}}`
	// Every reply takes 200 ± 200 ms.
	latency = `{"name":"slow","type":"latency","stream":"downstream","attributes":{"latency":200,"jitter":200}}`
)

func TestLostRepliesAndResetsChargeNothingTwice(t *testing.T) {
	t.Parallel()
	for name, toxic := range map[string]string{"replies lost": repliesLost, "resets": resets} {
		t.Run(name, func(t *testing.T) {
			redis := StartRedis(t, redisproc.Config{})
			network := newNetwork(t, redis)
			s := New(t, Setup{URL: network.url(), Servers: []string{redis.Addr}})
			for range rounds(2) {
				network.add(toxic)
				s.AwaitAcknowledged(80)
				network.clear()
				s.AwaitRecovery()
			}
			s.AwaitAcknowledged(100)
			if n := s.History.Count(func(c Call) bool { return c.Code == "outcome_unknown" }); n == 0 {
				t.Error("no write had an unknown outcome: no reply was lost")
			}
			s.Finish()
		})
	}
}

// medianCall returns the median duration of the acknowledged calls between these times.
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

// A slow network makes calls slow but has no other effect.
func TestSlowNetworkOnlyAddsLatency(t *testing.T) {
	t.Parallel()
	redis := StartRedis(t, redisproc.Config{})
	network := newNetwork(t, redis)
	s := New(t, Setup{URL: network.url(), Servers: []string{redis.Addr}})
	network.add(latency)
	from := s.History.Now()
	s.AwaitAcknowledged(rounds(60))
	to := s.History.Now()
	network.clear()
	s.AwaitRecovery()
	s.AwaitAcknowledged(100)
	if half := s.medianCall(from, to); half < 100*time.Millisecond {
		t.Errorf("half of the calls took less than %v: the network was not slow", half)
	}
	s.checkAnswered()
	s.Finish()
}
