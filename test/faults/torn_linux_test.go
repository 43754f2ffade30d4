//go:build long

package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/money"
)

// killUnsynced kills the server while the end of its file has not reached the disk, and returns where that end begins. With
// appendfsync always, no write in it has been acknowledged.
func killUnsynced(t *testing.T, m *Machine, r *Redis) (synced int64) {
	t.Helper()
	m.DelaySyncs(60 * time.Millisecond)
	defer m.DelaySyncs(0)
	awaitUnsynced(t, m, r, 1)
	r.Kill()
	synced = m.Synced(r.AppendOnlyFile())
	if sizeOf(t, r.AppendOnlyFile()) == synced {
		m.DelaySyncs(0) // the sync completed just before the kill
		r.Start()
		return killUnsynced(t, m, r)
	}
	return synced
}

// A power failure can leave part of a write. Redis truncates an incomplete last command and starts. It keeps the commands
// before that, even of the same script; redisproc removes those first.
func TestTornTailLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	machine, redis, s := onMachine(t, "always")
	for range rounds(3) {
		s.AwaitAcknowledged(30)
		synced := killUnsynced(t, machine, redis)
		unsynced := sizeOf(t, redis.AppendOnlyFile()) - synced
		left := rand.Int64N(unsynced)
		must(0, os.Truncate(redis.AppendOnlyFile(), synced+left))(t)
		redis.Start()
		s.AwaitRecovery()
		t.Logf("of %d unsynced bytes %d were left", unsynced, left)
	}
	s.AwaitAcknowledged(100)
	s.Finish()
}

// tornValue is what the charge costs that is torn: no other number in the file is like it.
const tornValue money.MicroUSD = 234_567

// The writes of a charge are torn between the session and the outcome of the idempotency key. After the next power failure,
// which comes before the charge is repeated, Redis must not find them again: the charge would count twice.
func TestTornChargeCountsOnceWhenItIsRepeatedLate(t *testing.T) {
	t.Parallel()
	machine, redis, s := onMachine(t, "always")
	s.StopWorkers()
	agent := s.Fixture.Agents[0]
	charge := ChargeSession(agent, s.openSession(agent.ID, time.Hour), 2, tornValue)
	charge.Key = "torn"
	tearCharge(t, s, machine, redis, charge)
	redis.Start()
	s.AwaitRecovery()
	later := ChargeSession(agent, agent.Roomy, 1, 1)
	later.Key = "after-the-tear"
	s.callOK(later)
	redis.Kill()
	redis.Start()
	s.AwaitRecovery()
	s.callOK(charge)
	s.StartWorkers() // also uses, and so drops, the connections to the Redis that was killed
	s.AwaitAcknowledged(100)
	s.Finish()
}

// tearCharge makes a keyed charge of tornValue, kills Redis before it has synced it, and truncates the file to where the
// outcome of its key begins.
func tearCharge(t *testing.T, s *Scenario, m *Machine, r *Redis, charge Request) {
	t.Helper()
	m.DelaySyncs(time.Second)
	answered := make(chan Outcome, 1)
	go func() {
		call, _ := s.Caller.Do(s.Instances[0].URL, charge)
		answered <- call.Outcome
	}()
	at := awaitOutcome(t, r)
	r.Kill()
	m.DelaySyncs(0)
	if outcome := <-answered; outcome != Unknown {
		t.Fatalf("the outcome of the charge is %s", outcome)
	}
	if synced := m.Synced(r.AppendOnlyFile()); synced > at {
		t.Fatalf("%d bytes are synced, and the charge is at %d", synced, at)
	}
	must(0, os.Truncate(r.AppendOnlyFile(), at))(t)
}

// awaitOutcome returns where in the file, behind the charge, the name of the command ends that stores its outcome.
func awaitOutcome(t *testing.T, r *Redis) int64 {
	t.Helper()
	value, set := fmt.Appendf(nil, "\r\n%d\r\n", int64(tornValue)), []byte("\r\nSET\r\n")
	charged, outcome := 0, 0
	waitEvery(t, time.Millisecond, 30*time.Second, "Redis has run the charge", func() bool {
		file := must(os.ReadFile(r.AppendOnlyFile()))(t)
		charged = bytes.Index(file, value)
		outcome = bytes.Index(file[max(charged, 0):], set)
		return charged >= 0 && outcome >= 0
	})
	return int64(charged + outcome + len(set))
}

// Redis does not start if the file ends in other bytes, because they may be damaged writes. redis-check-aof truncates them.
func TestGarbledTailIsRepairedByHandAndLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	machine, redis, s := onMachine(t, "always")
	synced := killUnsynced(t, machine, redis)
	garble(t, redis.AppendOnlyFile(), synced)

	if server, err := redisproc.Start(t.Context(), redis.Config); err == nil {
		// It answers PING while it loads the file, and then exits.
		select {
		case <-server.Done():
			err = server.Stop()
		case <-time.After(10 * time.Second):
			_ = server.Stop()
		}
		if err == nil {
			t.Fatal("Redis has started on a garbled file")
		}
	}
	repair(t, redis.Config.Dir)
	redis.Start()
	s.AwaitRecovery()
	s.AwaitAcknowledged(100)
	s.Finish()
}

// garble overwrites a file from an offset to its end, like a page that never reached the disk.
func garble(t *testing.T, path string, from int64) {
	t.Helper()
	file := must(os.OpenFile(path, os.O_WRONLY, 0))(t)
	defer file.Close()
	must(file.WriteAt([]byte(strings.Repeat("\xff\x00", int(sizeOf(t, path)-from))), from))(t)
}

// repair follows docs/operations.md.
func repair(t *testing.T, dir string) {
	t.Helper()
	tool := "redis-check-aof"
	if _, err := exec.LookPath(tool); err != nil {
		tool = "valkey-check-aof"
	}
	check := exec.Command(tool, "--fix", filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest"))
	check.Stdin = strings.NewReader("y\n")
	if output, err := check.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
