package faults

import (
	"os/exec"
	"strconv"
	"strings"
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
	s.Rest() // while a sync is under way Redis answers, and keeps for up to 2 s what it is to append
	awaitAppended(t, redis)
	redis.Kill() // the file has all of it again
	redis.Start()
	s.FaultOver()
	s.Resume()
	s.Acknowledged(100) // which also finds the connections that Redis has closed
	s.Finish()
}

// awaitAppended returns when the server has handed to the system all that it has acknowledged.
func awaitAppended(t *testing.T, r *Redis) {
	t.Helper()
	client := r.Client()
	waitUntil(t, 30*time.Second, "all is appended", func() bool {
		info := client.Info(t.Context(), "persistence").Val()
		return strings.Contains(info, "aof_buffer_length:0\r") && strings.Contains(info, "aof_pending_bio_fsync:0\r")
	})
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
