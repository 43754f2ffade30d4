package redisproc

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startedCluster runs a cluster until the test ends.
func startedCluster(tb testing.TB, primaries int) *Cluster {
	tb.Helper()
	c := must(StartCluster(tb.Context(), primaries))(tb)
	tb.Cleanup(func() { c.Stop() })
	return c
}

func TestClusterCoversAllSlots(t *testing.T) {
	t.Parallel()
	for _, primaries := range []int{1, 3} {
		t.Run(strconv.Itoa(primaries), func(t *testing.T) {
			t.Parallel()
			c := startedCluster(t, primaries)
			for _, addr := range c.Addrs() {
				wantEvenSlots(t, addr, c.Addrs())
			}
		})
	}
}

// wantEvenSlots checks the owners of the slots as the node at addr knows them.
func wantEvenSlots(t *testing.T, addr string, owners []string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	ranges := must(client.ClusterSlots(t.Context()).Result())(t)
	covered := 0
	for _, r := range ranges {
		size := r.End - r.Start + 1
		if even := slots / len(owners); size < even || size > even+1 {
			t.Errorf("%s: slots %d to %d are no even share", addr, r.Start, r.End)
		}
		if owner := owners[r.End*len(owners)/slots]; len(r.Nodes) != 1 || r.Nodes[0].Addr != owner {
			t.Errorf("%s: slots from %d belong to %+v; want %s alone", addr, r.Start, r.Nodes, owner)
		}
		covered += size
	}
	if covered != slots {
		t.Errorf("%s: %d slots are covered, want %d", addr, covered, slots)
	}
}

func TestClusterURLNamesEveryNode(t *testing.T) {
	t.Parallel()
	c := &Cluster{nodes: []node{{port: 12001}, {port: 12002}}}
	if got, want := c.URL(), "redis+cluster://127.0.0.1:12001,127.0.0.1:12002"; got != want {
		t.Errorf("URL() = %s, want %s", got, want)
	}
}

func TestStopEndsEveryNode(t *testing.T) {
	t.Parallel()
	c := startedCluster(t, 2)
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.nodes {
		if !isGone(n.temp) {
			t.Errorf("%s is still there", n.temp)
		}
	}
}

func TestStartClusterRefusesZeroPrimaries(t *testing.T) {
	t.Parallel()
	if _, err := StartCluster(t.Context(), 0); err == nil {
		t.Error("a cluster without a primary was started")
	}
}

func TestNodeOnATakenPortEndsBeforeItIsReady(t *testing.T) {
	t.Parallel()
	for _, offset := range []int{0, busOffset} {
		port := must(FreePort())(t)
		taken := must(net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port+offset))))(t)
		defer taken.Close()
		_, err := Start(t.Context(), Config{Port: port, Args: node{}.config().Args})
		if !errors.Is(err, errEnded) {
			t.Errorf("start with port %d taken: %v; want %v", port+offset, err, errEnded)
		}
	}
}

func TestAReplicaReplacesAKilledPrimaryWhichReturnsAsAReplica(t *testing.T) {
	t.Parallel()
	c := must(StartClusterWithReplicas(t.Context(), 3, t.TempDir()))(t)
	t.Cleanup(func() { c.Stop() })
	addrs := c.Addrs()
	if len(addrs) != 6 {
		t.Fatalf("%d nodes, want 6", len(addrs))
	}
	clientOf := func(i int) *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: addrs[i]})
		t.Cleanup(func() { client.Close() })
		return client
	}
	primary, replica := clientOf(0), clientOf(3)
	if err := primary.Set(t.Context(), "{06S}", "kept", 0).Err(); err != nil { // in slot 0
		t.Fatal(err)
	}
	if n, err := primary.Wait(t.Context(), 1, clusterLimit).Result(); n != 1 {
		t.Fatalf("%d replicas have it, %v", n, err)
	}
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	eventually := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(3 * clusterLimit); !holds(); time.Sleep(joinPause) {
			if time.Now().After(end) {
				t.Fatalf("waited in vain for %s", what)
			}
		}
	}
	eventually("the replica's promotion", func() bool { return replica.Get(t.Context(), "{06S}").Val() == "kept" })
	if err := c.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	eventually("the return as a replica", func() bool {
		info := primary.Info(t.Context(), "replication", "persistence").Val()
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up") &&
			strings.Contains(info, "aof_rewrite_in_progress:0") // until when it would not stop
	})
}
