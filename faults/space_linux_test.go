package faults

import (
	"net/http"
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
		awaitReady(t, s) // Redis tries again every second
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

// awaitReady returns when every instance says that it is.
func awaitReady(t *testing.T, s *Scenario) {
	t.Helper()
	for _, i := range s.Instances {
		for deadline := time.Now().Add(10 * time.Second); readyz(i) != http.StatusOK; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s is not ready", i.URL)
			}
		}
	}
}

// readyz returns what an instance answers to whoever watches it.
func readyz(i *Instance) int {
	client := http.Client{Timeout: callLimit}
	defer client.CloseIdleConnections()
	response, err := client.Get(i.URL + "/readyz")
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// refusesWritesAndReads expects every instance to refuse writes as unavailable, to say that it is not ready, and to read.
func (s *Scenario) refusesWritesAndReads() {
	s.t.Helper()
	s.awaitRefusal("unavailable")
	for _, i := range s.Instances {
		if got := readyz(i); got != http.StatusServiceUnavailable {
			s.t.Errorf("/readyz answers %d, want 503", got)
		}
		agent := s.World.Agents[0]
		for what, path := range map[string]string{"a session": "/sessions/" + agent.Roomy, "its list": "/sessions", "its token": "/v1/auth/verify"} {
			call, body := s.Caller.Do(i.URL, Request{Call: Call{Kind: Read}, Method: http.MethodGet, Path: path, Token: agent.Access})
			if call.Outcome != OK {
				s.t.Errorf("while writes are refused, %s cannot be read: %d %s", what, call.Status, body)
			}
		}
	}
}

// awaitRefusal returns when every instance that runs refuses charges with the code.
func (s *Scenario) awaitRefusal(code string) {
	s.t.Helper()
	agent := s.World.Agents[0]
	for _, i := range s.Instances {
		last := ""
		for deadline := time.Now().Add(10 * time.Second); last != code; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				s.t.Fatalf("%s answers %q to charges, want %s", i.URL, last, code)
			}
			call, _ := s.Caller.Do(i.URL, ChargeSession(agent, agent.Roomy, 1, 1))
			last = call.Code
		}
	}
}
