package faults

import (
	"context"
	"fmt"
	"strings"
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
	before := unknownScripts(t, redis)
	stop := inALoop(t, redis.Client(), flushScripts)
	s.Acknowledged(rounds(1000))
	stop()
	s.FaultOver()
	if more := unknownScripts(t, redis) - before; more < 50 { // more often than there are scripts
		t.Errorf("Redis did not have a script %d times, want 50 at least: it had forgotten none", more)
	}
	s.wantAnswered()
	s.Finish()
}

// unknownScripts returns how often the server was asked for a script that it did not have.
func unknownScripts(t *testing.T, r *Redis) (count int) {
	t.Helper()
	stats, err := r.Client().Info(t.Context(), "errorstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	if _, after, known := strings.Cut(stats, "errorstat_NOSCRIPT:count="); known {
		_, _ = fmt.Sscan(after, &count)
	}
	return count
}

// fewInDoubt is how many calls may be in doubt for no other reason than a machine that has too much to do.
const fewInDoubt = 3

// wantAnswered expects no failure but what a busy machine makes of calls with a time limit.
func (s *Scenario) wantAnswered() {
	s.t.Helper()
	failed, doubt := 0, 0
	for _, c := range s.History.Calls() {
		switch {
		case c.Code == "outcome_unknown":
			doubt++
		case c.Status == 0, c.Status >= 500 && c.Code != "unavailable":
			failed++
		}
	}
	if failed > 0 || doubt > fewInDoubt {
		s.t.Errorf("%d calls failed, and %d are in doubt: %s", failed, doubt, Summary(s.History.Calls()))
	}
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
