package redisproc

import (
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startReplicated runs a primary and a replica of it, on ports, until the test ends, and returns their addresses.
func startReplicated(tb testing.TB) (primary, replica *Server, addresses [2]string) {
	tb.Helper()
	var servers [2]*Server
	for i := range servers {
		port := must(FreePort())(tb)
		servers[i] = start(tb, Config{Port: port, ReplicaOf: addresses[0]})
		addresses[i] = net.JoinHostPort(loopback, strconv.Itoa(port))
	}
	client := connect(tb, servers[1])
	waitFor(tb, "the replica to follow", func() bool {
		return strings.Contains(client.Info(tb.Context(), "replication").Val(), "master_link_status:up")
	})
	return servers[0], servers[1], addresses
}

func TestSentinelsMakeAReplicaThePrimary(t *testing.T) {
	t.Parallel()
	primary, _, addresses := startReplicated(t)
	sentinels := must(StartSentinels(t.Context(), 3, addresses[0]))(t)
	t.Cleanup(func() { _ = sentinels.Stop() })
	if len(sentinels.Addrs()) != 3 {
		t.Errorf("sentinels at %q, want three", sentinels.Addrs())
	}
	at := func() string {
		client := redis.NewSentinelClient(&redis.Options{Addr: sentinels.Addrs()[2]})
		defer client.Close()
		known, err := client.GetMasterAddrByName(t.Context(), "remit").Result()
		if err != nil || len(known) != 2 {
			return err.Error()
		}
		return net.JoinHostPort(known[0], known[1])
	}
	if at() != addresses[0] {
		t.Errorf("the primary is at %s, want %s", at(), addresses[0])
	}
	_ = syscall.Kill(primary.PID(), syscall.SIGKILL)
	deadline := time.Now().Add(time.Minute) // a failover takes a few seconds, on a busy machine many
	for at() != addresses[1] {
		if time.Now().After(deadline) {
			t.Fatal("the replica is not the primary after a minute")
		}
		time.Sleep(joinPause)
	}
}

func TestStopEndsEverySentinel(t *testing.T) {
	t.Parallel()
	_, _, addresses := startReplicated(t)
	sentinels := must(StartSentinels(t.Context(), 2, addresses[0]))(t)
	if err := sentinels.Stop(); err != nil {
		t.Error(err)
	}
	for _, s := range sentinels.Servers() {
		if !isGone(s.temp) {
			t.Errorf("%s is still there", s.temp)
		}
	}
}

func TestStartSentinelsRefusesAPrimaryWithoutAPort(t *testing.T) {
	t.Parallel()
	if _, err := StartSentinels(t.Context(), 1, "localhost"); err == nil {
		t.Error("sentinels of a primary without a port were started")
	}
}
