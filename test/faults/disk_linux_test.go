//go:build long

package faults

import (
	"testing"
	"time"

	"remit/internal/redisproc"
)

// onMachine starts a scenario on a Redis with a simulated disk and clock.
func onMachine(t *testing.T, fsync string) (*Machine, *Redis, *Scenario) {
	t.Helper()
	machine := NewMachine(t)
	redis, s := onRedis(t, redisproc.Config{Fsync: fsync, Env: machine.Env}, Setup{})
	return machine, redis, s
}

// awaitUnsynced returns when so many bytes that the server has written have not reached the disk.
func awaitUnsynced(t *testing.T, m *Machine, r *Redis, bytes int64) {
	t.Helper()
	waitEvery(t, time.Millisecond, 30*time.Second, "the disk is slow, and Redis writes", func() bool { return m.Unsynced(r) >= bytes })
}

// cutPower kills the server while it has unsynced data, removes that data, and restarts the server.
func cutPower(t *testing.T, m *Machine, r *Redis, unsynced int64) (lost int64) {
	t.Helper()
	awaitUnsynced(t, m, r, unsynced)
	r.Kill()
	lost = m.LosePower(r)
	m.DelaySyncs(0)
	r.Start()
	return lost
}

// Writes must be lost here: this shows that the checks can fail and that the simulated disk loses data.
func TestEverysecLosesAcknowledgedWritesInAPowerFailure(t *testing.T) {
	t.Parallel()
	machine, redis, s := onMachine(t, "everysec")
	file := redis.AppendOnlyFile()
	written := sizeOf(t, file) // the agents, which must survive, or every later call fails
	waitUntil(t, 30*time.Second, "the server syncs what it has written", func() bool { return machine.Synced(file) >= written })
	machine.DelaySyncs(1500 * time.Millisecond)
	lost := cutPower(t, machine, redis, 20_000)
	s.AwaitRecovery()
	s.AwaitAcknowledged(100)
	if broken := s.finishWith(lossRules); broken[RuleLost] == 0 {
		t.Errorf("%d bytes were lost, but no acknowledged write is missing: %v", lost, broken)
	}
}

func TestAlwaysLosesNothingInAPowerFailure(t *testing.T) {
	t.Parallel()
	machine, redis, s := onMachine(t, "always")
	lost := int64(0)
	for round := 0; round < rounds(2) || lost == 0 && round < 10; round++ { // a sync may complete just before the failure
		machine.DelaySyncs(60 * time.Millisecond)
		s.AwaitAcknowledged(50)
		cut := cutPower(t, machine, redis, 1)
		t.Logf("%d bytes lost", cut)
		lost += cut
		s.AwaitRecovery()
	}
	if lost == 0 {
		t.Error("no byte was lost: no power failure hit a write")
	}
	s.AwaitAcknowledged(100)
	s.Finish()
}
