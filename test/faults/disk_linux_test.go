//go:build long

package faults

import (
	"slices"
	"testing"
	"time"

	"remit/internal/redisproc"
)

// onMachine starts a Redis with a simulated disk and clock.
func onMachine(t *testing.T, fsync string) (*Machine, *Redis) {
	t.Helper()
	machine := NewMachine(t)
	return machine, StartRedis(t, redisproc.Config{Fsync: fsync, Env: machine.Env})
}

// awaitUnsynced returns when so many bytes that the server has written have not reached the disk.
func awaitUnsynced(t *testing.T, m *Machine, r *Redis, bytes int64) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); m.Unsynced(r) < bytes; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are not synced, want %d: the disk is not slow, or Redis writes nothing", m.Unsynced(r), bytes)
		}
	}
}

// awaitSynced returns when everything that the server has written so far has reached the disk.
func awaitSynced(t *testing.T, m *Machine, r *Redis) {
	t.Helper()
	written := sizeOf(t, r.AppendOnlyFile())
	for deadline := time.Now().Add(30 * time.Second); m.Synced(r.AppendOnlyFile()) < written; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server does not sync what it has written")
		}
	}
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
	machine, redis := onMachine(t, "everysec")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	awaitSynced(t, machine, redis) // the agents must survive, or every later call fails
	machine.DelaySyncs(1500 * time.Millisecond)
	lost := cutPower(t, machine, redis, 20_000)
	s.AwaitRecovery()
	s.AwaitAcknowledged(100)
	violations := s.Violations()
	count := map[Rule]int{}
	for _, v := range violations {
		count[v.Rule]++
		if !slices.Contains(lossRules, v.Rule) {
			t.Error(v)
		}
	}
	t.Logf("%d bytes lost: %v", lost, count)
	if !slices.ContainsFunc(violations, func(v Violation) bool { return v.Rule == RuleLost }) {
		t.Errorf("%d bytes were lost, but no acknowledged write is missing: %v", lost, violations)
	}
}

// mostCuts is the maximum number of power failures until one loses data.
const mostCuts = 10

func TestAlwaysLosesNothingInAPowerFailure(t *testing.T) {
	machine, redis := onMachine(t, "always")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	lost := int64(0)
	for round := 0; round < rounds(2) || lost == 0 && round < mostCuts; round++ { // a sync may complete just before the failure
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
