// Package redistest starts real Redis servers for tests, alone, in pairs and in clusters, and stands between them and their
// clients.
package redistest

import (
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
)

// StartRedis runs a real Redis of the test's own, for what must not disturb other tests.
func StartRedis(t *testing.T, cfg redisproc.Config) *redisproc.Server {
	t.Helper()
	SkipIfShort(t)
	server := Must(redisproc.Start(t.Context(), cfg))(t)
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

// PlainClient returns a client of the URL as go-redis makes it, for what the client under test does not do.
func PlainClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	client := redis.NewClient(Must(redis.ParseURL(url))(t))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// CommandCounts returns how often a server has run each command, those inside scripts included.
func CommandCounts(t *testing.T, server *redis.Client) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(Must(server.Info(t.Context(), "commandstats").Result())(t)) {
		name, stats, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if calls, _, ok := strings.Cut(stats, ","); found && ok {
			counts[name] = Must(strconv.Atoi(calls))(t)
		}
	}
	return counts
}

// CommandsRun returns which commands the server has run since before, and how often, without the greetings of new
// connections, the monitor of its role and the asking itself.
func CommandsRun(t *testing.T, server *redis.Client, before map[string]int) map[string]int {
	t.Helper()
	run := map[string]int{}
	for name, count := range CommandCounts(t, server) {
		if count != before[name] && name != "info" && name != "hello" && name != "blpop" {
			run[name] = count - before[name]
		}
	}
	return run
}

// StartCluster runs a real cluster of the test's own and returns the addresses of its primaries.
func StartCluster(t *testing.T, primaries int) []string {
	t.Helper()
	SkipIfShort(t)
	cluster := Must(redisproc.StartCluster(t.Context(), primaries))(t)
	t.Cleanup(func() { _ = cluster.Stop() })
	return cluster.Addrs()
}

// StartOnPort runs a real Redis that listens on a port.
func StartOnPort(t *testing.T, cfg redisproc.Config) (server *redisproc.Server, address string) {
	t.Helper()
	cfg.Port = Must(redisproc.FreePort())(t)
	return StartRedis(t, cfg), net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port))
}

// SocketOf returns the path of a server's socket.
func SocketOf(server *redisproc.Server) string { return strings.TrimPrefix(server.URL(), "unix://") }

// SkipIfShort skips a test that needs a real Redis, with -short.
func SkipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real Redis")
	}
}

// Suspend stops the process of a server without ending it, until resume or the end of the test.
func Suspend(t *testing.T, server *redisproc.Server) (resume func()) {
	t.Helper()
	return SuspendProcess(t, server.PID())
}

// SuspendProcess is Suspend for a process.
func SuspendProcess(t *testing.T, pid int) (resume func()) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// SlotsOf asks Redis for the slot of each key.
func SlotsOf(t *testing.T, node *redis.Client, keys []string) []int64 {
	t.Helper()
	slots := make([]int64, len(keys))
	replies := Must(node.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.ClusterKeySlot(t.Context(), key)
		}
		return nil
	}))(t)
	for i, reply := range replies {
		slots[i] = reply.(*redis.IntCmd).Val()
	}
	return slots
}
