package server_test

import (
	"bytes"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// losingProxy stands before a Redis and can lose one of its answers, with the connection: what was asked was carried out.
type losingProxy struct {
	address string
	network string // and place of the Redis
	redis   string
	lose    atomic.Int64 // the answer to which of the coming requests; 0 for none
}

func newLosingProxy(t *testing.T, redisURL string) *losingProxy {
	t.Helper()
	at := must(redis.ParseURL(redisURL))(t)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	p := &losingProxy{address: listener.Addr().String(), network: at.Network, redis: at.Addr}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

// serve passes on until either side closes.
func (p *losingProxy) serve(client net.Conn) {
	defer client.Close()
	redis, err := net.Dial(p.network, p.redis)
	if err != nil {
		return
	}
	defer redis.Close()
	var lost atomic.Bool
	go func() {
		defer redis.Close()
		pass(client, redis, func(request []byte) bool {
			// Requests are counted, because what is written in one go is read in one; its replies may come one by one. The
			// store's monitor of the server's role waits in a BLPOP, whatever is asked meanwhile.
			if !bytes.Contains(request, []byte("BLPOP")) && p.lose.Load() > 0 && p.lose.Add(-1) == 0 {
				lost.Store(true)
			}
			return true
		})
	}()
	pass(redis, client, func([]byte) bool { return !lost.Load() })
}

func pass(from, to net.Conn, keep func(read []byte) bool) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		if err != nil || !keep(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// This is what the keys are for: the change was made, its answer was lost, and the client tries again.
func TestARequestWhoseAnswerWasLostIsAnsweredTheSecondTime(t *testing.T) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		wantLostAnswersRepeated(t, "redis://"+miniredis.RunT(t).Addr())
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		wantLostAnswersRepeated(t, privateRedis(t).URL())
	})
}

func wantLostAnswersRepeated(t *testing.T, redisURL string) {
	t.Helper()
	proxy := newLosingProxy(t, redisURL)
	d := start(t, setup{redis: "redis://" + proxy.address}).newDoer()
	for _, r := range d.keyedRequests() { // so that Redis knows all scripts
		d.sendKeyed(r, r.body, "first-"+strings.ReplaceAll(r.name+r.path, " ", "-")).is(r.status)
	}
	// How many answers come before that to the change itself.
	before := map[string]int64{
		"create session": 1, "charge by key": 2, "charge by token": 0, "begin": 2, "commit": 1, "rollback by key": 2,
		"rollback by token": 1, "batch by key": 2, "batch by token": 1, "change hold": 1, "top up": 2,
	}
	for _, r := range d.keyedRequests() {
		key := strings.ReplaceAll(r.name+r.path, " ", "-")
		unchanged := d.holdings()
		proxy.lose.Store(before[r.name] + 1)
		lost := d.sendKeyed(r, r.body, key).fresh()
		changed := d.holdings()
		again := d.sendKeyed(r, r.body, key).is(r.status)
		if r.path == "/v1/actions" { // whose items tell of the trouble one by one, and may have it one by one
			if !strings.Contains(string(lost.is(200).body), "outcome_unknown") {
				t.Errorf("%s: no item was lost: %s", r.name, lost.body)
			}
		} else {
			lost.refused(503, "outcome_unknown")
			if got := again.header.Get("Idempotent-Replayed"); got != "true" || changed == unchanged || changed != d.holdings() {
				t.Errorf("%s: done a second time, or not the first (Idempotent-Replayed %q)", r.name, got)
			}
		}
		d.sendKeyed(r, r.body, key).replays(again)
		wantOneEffect(t, r, unchanged, d.holdings())
	}
}
