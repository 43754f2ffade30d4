package faults

import (
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// fillDisk lets the server's files grow no more, and makeRoom lets them again.
func fillDisk(t *testing.T, r *Redis) {
	limitFiles(t, r, strconv.FormatInt(sizeOf(t, r.AppendOnlyFile()), 10))
}

func makeRoom(t *testing.T, r *Redis) { limitFiles(t, r, "unlimited") }

func limitFiles(t *testing.T, r *Redis, bytes string) {
	t.Helper()
	if output, err := exec.Command("prlimit", "--pid", strconv.Itoa(r.PID()), "--fsize="+bytes+":unlimited").CombinedOutput(); err != nil {
		t.Fatalf("prlimit: %v\n%s", err, output)
	}
}

// With everysec Redis refuses writes until it can append again, and keeps in memory what it had acknowledged before.
func TestAFullDiskRefusesWritesAndLetsReadsGoOn(t *testing.T) {
	_, redis := onMachine(t, "everysec")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for range rounds(1) {
		fillDisk(t, redis)
		s.refusesWritesAndReads()
		makeRoom(t, redis)
		s.awaitReady() // Redis tries again every second
		s.FaultOver()
		s.Acknowledged(100)
	}
	redis.Kill() // the file has all of it again
	redis.Start()
	s.FaultOver()
	s.Finish()
}

// With always Redis ends at the first write that it cannot append: it could not keep its promise. Who runs it starts it
// again.
func TestAFullDiskEndsRedisThatSyncsAlwaysAndLosesNothing(t *testing.T) {
	_, redis := onMachine(t, "always")
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for range rounds(2) {
		fillDisk(t, redis)
		select {
		case <-redis.Ended():
		case <-time.After(10 * time.Second):
			t.Fatal("Redis goes on without a disk")
		}
		s.awaitRefusal("unavailable")
		redis.Start()
		s.FaultOver()
		s.Acknowledged(100)
	}
	s.Finish()
}
