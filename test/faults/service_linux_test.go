//go:build long

package faults

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/money"
)

// Redis is frozen while the instance is killed, so the instance dies after it sent a command and before the reply.
func TestChargeInFlightWhenItsInstanceIsKilledIsIdempotent(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{}, Setup{Workers: 1})
	s.StopWorkers()
	executed := 0
	for round := 0; round < 6 && executed == 0; round++ { // the first command to reach Redis may be one of the instance's background work
		chargeWhileKilled(t, s, redis, round)
		executed = s.History.Count(func(c Call) bool { return c.Replayed })
		s.Restart(0)
	}
	t.Logf("%d charges of the killed instance were executed", executed)
	if executed == 0 {
		t.Error("no charge was in flight")
	}
	s.Finish()
}

// chargeWhileKilled kills an instance with charges in flight, and repeats them at the other one.
func chargeWhileKilled(t *testing.T, s *Scenario, redis *Redis, round int) {
	t.Helper()
	agent := s.Fixture.Agents[0]
	var charges []Request
	for n := range 8 {
		r := ChargeSession(agent, agent.Roomy, 1, money.USD)
		r.Key = fmt.Sprintf("in-flight-%d-%d", round, n)
		charges = append(charges, r)
	}
	var warm, calls sync.WaitGroup
	for n := range charges {
		warm.Go(func() { s.acknowledges(s.Instances[0], n) }) // opens the connections that the charges will use
	}
	warm.Wait()
	redis.Freeze()
	for _, r := range charges {
		calls.Go(func() { s.Caller.Do(s.Instances[0].URL, r) })
	}
	awaitUnread(t, redis) // a charge has reached Redis, which will read it after Thaw
	s.Instances[0].Kill()
	calls.Wait()
	redis.Thaw()
	s.AwaitRecovery()
	for _, r := range charges {
		if call, body := s.Caller.Do(s.Instances[1].URL, r); call.Outcome != OK {
			t.Errorf("repeated: %d %s", call.Status, body)
		}
	}
}

// commandBytes is more than the handshake of a connection and less than a charge.
const commandBytes = 150

// awaitUnread returns when a frozen server has an unread command. The kernel counts the unread bytes of each connection.
func awaitUnread(t *testing.T, r *Redis) {
	t.Helper()
	waitEvery(t, time.Millisecond, 30*time.Second, "a command reaches Redis", func() bool {
		return slices.ContainsFunc(must(tcpConnections(os.Getpid()))(t), func(c tcpConnection) bool {
			return c.local == int64(r.Config.Port) && c.state != listening && c.unread >= commandBytes
		})
	})
}
