//go:build long

package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/internal/redisproc"
)

// repeat calls do every few milliseconds until the returned function is called.
func repeat(t *testing.T, do func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() {
		for ctx.Err() == nil {
			if err := do(ctx); err != nil && ctx.Err() == nil {
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

// When Redis has no script, the service sends it again with its source, in a pipeline too. Callers see no error.
func TestForgottenScriptsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{}, Setup{Workers: 24}) // enough for calls to share pipelines
	before := unknownScripts(t, redis)
	client := redis.Client()
	stop := repeat(t, func(ctx context.Context) error { return client.ScriptFlush(ctx).Err() })
	s.AwaitAcknowledged(rounds(1000))
	stop()
	s.AwaitRecovery()
	if more := unknownScripts(t, redis) - before; more < 50 { // more than there are scripts
		t.Errorf("Redis answered NOSCRIPT %d times, want at least 50: the scripts were not flushed", more)
	}
	s.checkAnswered()
	s.Finish()
}

// unknownScripts returns how often the server has answered NOSCRIPT.
func unknownScripts(t *testing.T, r *Redis) (count int) {
	t.Helper()
	stats := must(r.Client().Info(t.Context(), "errorstats").Result())(t)
	if _, after, known := strings.Cut(stats, "errorstat_NOSCRIPT:count="); known {
		_, _ = fmt.Sscan(after, &count)
	}
	return count
}

// checkAnswered allows only the failures that time limits cause on a busy machine.
func (s *Scenario) checkAnswered() {
	s.t.Helper()
	failed, unknown := 0, 0
	for _, c := range s.History.Calls() {
		switch {
		case c.Code == "outcome_unknown":
			unknown++
		case c.Status == 0, c.Status >= 500 && c.Code != "unavailable":
			failed++
		}
	}
	if failed > 0 || unknown > 3 {
		s.t.Errorf("%d calls failed, and %d have an unknown outcome: %s", failed, unknown, Summary(s.History.Calls()))
	}
}

// When Redis closes a connection, the outcome of its commands is unknown. The service must not send them again.
func TestClosedConnectionsChargeNothingTwice(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{}, Setup{Workers: 24})
	client := redis.Client()
	stop := repeat(t, func(ctx context.Context) error {
		return client.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err()
	})
	s.AwaitAcknowledged(rounds(500))
	stop()
	s.AwaitRecovery()
	s.AwaitAcknowledged(100)
	if n := s.History.Count(func(c Call) bool { return c.Code == "outcome_unknown" }); n == 0 {
		t.Error("no write had an unknown outcome: no connection was closed while in use")
	}
	s.Finish()
}
