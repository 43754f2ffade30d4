package redisstore

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/test/redistest"
)

// refusing is a state in which Redis refuses every write, or, when it is full, every one that takes memory.
type refusing struct {
	name   string
	answer string // how its refusals begin
	reason string // as Ready gives it
	begin  func(*testing.T, *redis.Client)
	end    func(*testing.T, *redis.Client)
}

var (
	isFull = refusing{"its memory is full", "OOM", "Redis is full: it has reached its maxmemory and refuses writes",
		set("maxmemory", "1"), set("maxmemory", "0")}
	lacksReplicas = refusing{"it lacks replicas", "NOREPLICAS",
		"Redis has fewer replicas than min-replicas-to-write and refuses writes",
		set("min-replicas-to-write", "1"), set("min-replicas-to-write", "0")}
	cannotSave = refusing{"its disk fails", "MISCONF", "Redis cannot save to its disk and refuses writes",
		failToSave, set("save", "")}
	isReplica = refusing{"it became a replica", "READONLY", "Redis is a replica and refuses writes",
		func(t *testing.T, server *redis.Client) {
			must(server.SlaveOf(t.Context(), "127.0.0.1", "1").Result())(t)
		},
		func(t *testing.T, server *redis.Client) { must(server.SlaveOf(t.Context(), "NO", "ONE").Result())(t) }}
)

// allRefusing are these states. A cluster has no replica case: its nodes redirect writes.
var allRefusing = []refusing{isFull, lacksReplicas, cannotSave, isReplica}

// readableRefusing are those in which what is read is up to date.
var readableRefusing = []refusing{isFull, lacksReplicas, cannotSave}

func set(parameter, value string) func(*testing.T, *redis.Client) {
	return func(t *testing.T, server *redis.Client) {
		t.Helper()
		must(server.ConfigSet(t.Context(), parameter, value).Result())(t)
	}
}

// failToSave has the server try to save where a directory is in the way of its file.
func failToSave(t *testing.T, server *redis.Client) {
	t.Helper()
	ctx := t.Context()
	dir := must(server.ConfigGet(ctx, "dir").Result())(t)["dir"]
	mustDo(t, os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o700))
	set("save", "3600 1")(t, server)
	must(server.BgSave(ctx).Result())(t)
	eventually(t, "the save has failed", func() bool {
		return strings.Contains(must(server.Info(ctx, "persistence").Result())(t), "rdb_last_bgsave_status:err")
	})
}

// onEachRefusing runs the test for each of the states on a real Redis and on a real Redis Cluster of the test's own. refuse
// brings the state about on every server; accept ends it.
func onEachRefusing(t *testing.T, states []refusing, test func(t *testing.T, s *Store, state refusing, refuse, accept func())) {
	t.Helper()
	t.Parallel()
	run := func(t *testing.T, s *Store, servers []*redis.Client) {
		for _, state := range states {
			if state.name == isReplica.name && len(servers) > 1 {
				continue
			}
			t.Run(state.name, func(t *testing.T) {
				each := func(do func(*testing.T, *redis.Client)) func() {
					return func() {
						t.Helper()
						for _, server := range servers {
							do(t, server)
						}
					}
				}
				begin := each(state.begin)
				if state.name == isReplica.name {
					begin = func() { untilRetired(t, s, each(state.begin)) }
				}
				test(t, s, state, begin, each(state.end))
			})
		}
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s, server := withOwnRedis(t, Config{})
		run(t, s, []*redis.Client{server})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		addresses := redistest.StartCluster(t, 3)
		s := openStore(t, Config{}, "redis+cluster://"+strings.Join(addresses, ","), nil)
		var servers []*redis.Client
		for _, address := range addresses {
			servers = append(servers, redistest.PlainClient(t, "redis://"+address))
		}
		run(t, s, servers)
	})
}

// untilRetired makes a server a replica and returns when the store uses none of the connections to it any more: a new one is
// refused.
func untilRetired(t *testing.T, s *Store, demote func()) {
	t.Helper()
	wantError(t, "Ping before", s.Ping(t.Context()), nil) // which leaves a connection in the pool
	demote()
	eventually(t, "the connections are retired", func() bool { return redis.HasErrorPrefix(s.Ping(t.Context()), "READONLY") })
}

// dump is everything in the store except readiness probes, with the expiry of each key.
func dump(t *testing.T, s *Store) map[string]any {
	t.Helper()
	keys := slices.DeleteFunc(keysKept(t, s), func(key string) bool { return strings.HasPrefix(key, s.config.Prefix+"r:") })
	found, ends := contents(t, s, keys...), make([]*redis.DurationCmd, len(keys))
	must(peek(t, s).Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, key := range keys {
			ends[i] = p.PExpireTime(t.Context(), key)
		}
		return nil
	}))(t)
	for i, key := range keys {
		found[key+" until"] = ends[i].Val()
	}
	return found
}

// wantSameDump compares what is stored with what was dumped before, but for the keys whose time has come meanwhile.
func wantSameDump(t *testing.T, s *Store, what string, before map[string]any) {
	t.Helper()
	after := dump(t, s)
	now := time.Duration(time.Now().UnixNano())
	wantSame(t, what, lasting(before, now), lasting(after, now))
}

// lasting drops from a dump the keys that have ended by then, a time since 1970.
func lasting(dumped map[string]any, then time.Duration) map[string]any {
	for name, value := range dumped {
		if end, is := value.(time.Duration); is && end != -1 && end < then {
			delete(dumped, name)
			delete(dumped, strings.TrimSuffix(name, " until"))
		}
	}
	return dumped
}

// atOnce does eight operations at a time, each bounded as every call is.
func atOnce(t *testing.T, s *Store, operations []operation, check func(operation, error)) {
	t.Helper()
	var wg sync.WaitGroup
	places := make(chan struct{}, 8)
	for _, operation := range operations {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
			defer cancel()
			check(operation, operation.do(ctx, s))
		})
	}
	wg.Wait()
}
