package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/redisproc"
)

// inALoop does something to the server every few milliseconds until the returned function is called.
func inALoop(t *testing.T, client *redis.Client, do func(context.Context, *redis.Client) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() {
		for ctx.Err() == nil {
			if err := do(ctx, client); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(3 * time.Millisecond)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); loop.Wait() })
	t.Cleanup(stop)
	return stop
}

// A script that Redis has forgotten is sent again with its source: nobody notices, not in a pipeline either.
func TestForgottenScriptsAreNoticedByNobody(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}, Workers: 24}) // so many that calls share pipelines
	stop := inALoop(t, redis.Client(), flushScripts)
	s.Acknowledged(rounds(1000))
	stop()
	s.FaultOver()
	if n := s.History.Count(func(c Call) bool { return c.Status == 0 || c.Status >= 500 }); n > 0 {
		t.Errorf("%d calls failed: %s", n, Summary(s.History.Calls()))
	}
	s.Finish()
}

func flushScripts(ctx context.Context, client *redis.Client) error {
	return client.ScriptFlush(ctx).Err()
}

// Whoever's connection is closed does not know whether its command was carried out; nothing is sent twice for it.
func TestClientsThatAreKilledChargeNothingTwice(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}, Workers: 24})
	stop := inALoop(t, redis.Client(), killClients)
	s.Acknowledged(rounds(500))
	stop()
	s.FaultOver()
	s.Acknowledged(100)
	if n := s.History.Count(func(c Call) bool { return c.Code == "outcome_unknown" }); n == 0 {
		t.Error("no write was in doubt: no connection was closed at work")
	}
	s.Finish()
}

func killClients(ctx context.Context, client *redis.Client) error {
	return client.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err()
}
