//go:build long

package faults

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/redisproc"
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
		return killAgain(t, m, r) // the sync completed just before the kill
	}
	return synced
}

func killAgain(t *testing.T, m *Machine, r *Redis) int64 {
	t.Helper()
	m.DelaySyncs(0)
	r.Start()
	return killUnsynced(t, m, r)
}

// A power failure can leave part of a write. Redis truncates an incomplete last command and starts.
func TestTornTailLosesNothingAcknowledged(t *testing.T) {
	machine, redis := onMachine(t, "always")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for range rounds(3) {
		s.AwaitAcknowledged(30)
		synced := killUnsynced(t, machine, redis)
		unsynced := sizeOf(t, redis.AppendOnlyFile()) - synced
		left := rand.Int64N(unsynced)
		if err := os.Truncate(redis.AppendOnlyFile(), synced+left); err != nil {
			t.Fatal(err)
		}
		redis.Start()
		s.AwaitRecovery()
		t.Logf("of %d unsynced bytes %d were left", unsynced, left)
	}
	s.AwaitAcknowledged(100)
	s.Finish()
}

// Redis does not start if the file ends in other bytes, because they may be damaged writes. redis-check-aof truncates them.
func TestGarbledTailIsRepairedByHandAndLosesNothingAcknowledged(t *testing.T) {
	machine, redis := onMachine(t, "always")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
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
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteAt([]byte(strings.Repeat("\xff\x00", int(sizeOf(t, path)-from))), from)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
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
