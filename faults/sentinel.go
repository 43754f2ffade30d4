package faults

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/redisproc"
)

// Watched is a primary and its replicas, with three sentinels that watch them.
type Watched struct {
	Servers   []*Redis
	Sentinels *redisproc.Sentinels

	t testing.TB
}

// failoverPatience is how long sentinels may take to agree on a new primary, on a machine that has too much to do.
const failoverPatience = 60 * time.Second

// StartWatched runs them until the test ends. The sentinels take the primary for down after a second.
func StartWatched(t testing.TB, replicas int) *Watched {
	t.Helper()
	w := &Watched{Servers: []*Redis{StartRedis(t, redisproc.Config{})}, t: t}
	for range replicas {
		w.Servers = append(w.Servers, StartRedis(t, redisproc.Config{ReplicaOf: w.Servers[0].Addr}))
	}
	w.InStep(w.Servers[1:]...)
	var err error
	if w.Sentinels, err = redisproc.StartSentinels(t.Context(), 3, redisproc.Watch{Primary: w.Servers[0].Addr}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Sentinels.Stop() })
	return w
}

// Addrs returns the addresses of the servers, and of the sentinels: instances have connections to both.
func (w *Watched) Addrs() []string {
	addrs := w.Sentinels.Addrs()
	for _, server := range w.Servers {
		addrs = append(addrs, server.Addr)
	}
	return addrs
}

// Primary returns the server that all sentinels take for the primary, or nil while they do not agree.
func (w *Watched) Primary() *Redis {
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

// Promoted returns when all sentinels take another server for the primary: each has told its clients so by then.
func (w *Watched) Promoted(old *Redis) {
	w.t.Helper()
	waitUntil(w.t, failoverPatience, "there is a new primary", func() bool {
		primary := w.Primary()
		return primary != nil && primary != old
	})
}

// InStep returns when the servers follow their primary, with all that it has.
func (w *Watched) InStep(replicas ...*Redis) {
	w.t.Helper()
	for _, replica := range replicas {
		client := redis.NewClient(&redis.Options{Addr: replica.Addr, DisableIdentity: true, PoolSize: 1})
		waitUntil(w.t, failoverPatience, "a replica follows", func() bool {
			info := client.Info(w.t.Context(), "replication").Val()
			return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
		})
		_ = client.Close()
	}
}

// waitUntil returns when the condition holds, and fails the test when that takes too long.
func waitUntil(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", limit, what)
		}
	}
}
