//go:build long

package faults

import (
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fillDisk prevents the files of the server from growing.
func fillDisk(t *testing.T, r *Redis) {
	limitFiles(t, r, strconv.FormatInt(sizeOf(t, r.AppendOnlyFile()), 10))
}

func limitFiles(t *testing.T, r *Redis, bytes string) {
	t.Helper()
	if output, err := exec.Command("prlimit", "--pid", strconv.Itoa(r.PID()), "--fsize="+bytes+":unlimited").CombinedOutput(); err != nil {
		t.Fatalf("prlimit: %v\n%s", err, output)
	}
}

// With everysec Redis refuses writes until it can append again. It keeps earlier acknowledged writes in memory.
func TestFullDiskRefusesWritesAndServesReads(t *testing.T) {
	t.Parallel()
	_, redis, s := onMachine(t, "everysec")
	for range rounds(1) {
		fillDisk(t, redis)
		s.refusesWritesAndReads()
		limitFiles(t, redis, "unlimited")
		for _, i := range s.Instances { // Redis tries again every second
			waitUntil(t, time.Minute, i.URL+" is ready", func() bool { return s.readyz(i) == http.StatusOK })
		}
		s.AwaitRecovery()
		s.AwaitAcknowledged(100)
	}
	s.StopWorkers() // during a sync Redis answers, and buffers what it will append for up to 2 s
	client := redis.Client()
	waitUntil(t, 30*time.Second, "every write is appended", func() bool {
		info := client.Info(t.Context(), "persistence").Val()
		return strings.Contains(info, "aof_buffer_length:0\r") && strings.Contains(info, "aof_pending_bio_fsync:0\r")
	})
	redis.Kill() // the file is complete again
	redis.Start()
	s.AwaitRecovery()
	s.StartWorkers()
	s.AwaitAcknowledged(100) // enough calls to use every connection that Redis has closed
	s.Finish()
}

// With always Redis exits at the first write that it cannot append, because it could not keep its promise. The operator
// restarts it.
func TestFullDiskStopsRedisThatSyncsAlwaysAndLosesNothing(t *testing.T) {
	t.Parallel()
	_, redis, s := onMachine(t, "always")
	for range rounds(2) {
		fillDisk(t, redis)
		select {
		case <-redis.Ended():
		case <-time.After(time.Minute):
			t.Fatal("Redis still runs with a full disk")
		}
		s.awaitRefusal("unavailable")
		redis.Start()
		s.AwaitRecovery()
		s.AwaitAcknowledged(100)
	}
	s.Finish()
}
