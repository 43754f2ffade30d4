package faults

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
)

// SentinelGroup is a primary and its replicas, monitored by three sentinels.
type SentinelGroup struct {
	Servers   []*Redis
	Sentinels *redisproc.Sentinels

	t testing.TB
}

// failoverPatience is how long sentinels may take to agree on a new primary, or to make the old one its replica. A failover that does not
// end is tried again after 20 s. The old primary becomes a replica only after both have been up for 8 s, and a second's silence is down.
const failoverPatience = 3 * time.Minute

// StartSentinelGroup runs a group until the test ends. The sentinels consider the primary down after one second.
func StartSentinelGroup(t testing.TB, replicas int) *SentinelGroup {
	t.Helper()
	w := &SentinelGroup{Servers: []*Redis{StartRedis(t, redisproc.Config{})}, t: t}
	for range replicas {
		w.Servers = append(w.Servers, StartRedis(t, redisproc.Config{ReplicaOf: w.Servers[0].Addr}))
	}
	w.AwaitReplicas(w.Servers[1:]...)
	var err error
	if w.Sentinels, err = redisproc.StartSentinels(t.Context(), 3, w.Servers[0].Addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Sentinels.Stop() })
	return w
}

// Addrs returns the addresses of the servers and the sentinels. Instances connect to both.
func (w *SentinelGroup) Addrs() []string {
	addrs := w.Sentinels.Addrs()
	for _, server := range w.Servers {
		addrs = append(addrs, server.Addr)
	}
	return addrs
}

// Primary returns the server that all sentinels name as the primary, or nil while they disagree.
func (w *SentinelGroup) Primary() *Redis {
	named := map[string]int{}
	for _, address := range w.Sentinels.Addrs() {
		client := redis.NewSentinelClient(&redis.Options{Addr: address, DisableIdentity: true})
		known, err := client.GetMasterAddrByName(w.t.Context(), "remit").Result()
		_ = client.Close()
		if err == nil && len(known) == 2 {
			named[net.JoinHostPort(known[0], known[1])]++
		}
	}
	for _, server := range w.Servers {
		if named[server.Addr] == len(w.Sentinels.Addrs()) {
			return server
		}
	}
	return nil
}

// AwaitPromotion returns when all sentinels name a primary other than old. Each has notified its clients by then.
func (w *SentinelGroup) AwaitPromotion(old *Redis) {
	w.t.Helper()
	waitUntil(w.t, failoverPatience, "there is a new primary", func() bool {
		primary := w.Primary()
		return primary != nil && primary != old
	})
}

// AwaitReplicas returns when the servers replicate from their primary and are in sync.
func (w *SentinelGroup) AwaitReplicas(replicas ...*Redis) {
	w.t.Helper()
	var info string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the last of them says %s", info)
		}
	}()
	for _, replica := range replicas {
		client := redis.NewClient(&redis.Options{Addr: replica.Addr, DisableIdentity: true, PoolSize: 1})
		waitUntil(w.t, failoverPatience, "a replica follows", func() bool {
			info = client.Info(w.t.Context(), "replication").Val()
			return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
		})
		_ = client.Close()
	}
}
