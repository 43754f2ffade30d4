package redisstore

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/redisproc"
)

// startRedis runs a real Redis of the test's own, for what the other tests must not feel.
func startRedis(t *testing.T, cfg redisproc.Config) *redisproc.Server {
	t.Helper()
	skipIfShort(t)
	server := must(redisproc.Start(t.Context(), cfg))(t)
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

// plainClient returns a client of the URL as go-redis makes it, for what the store does not do.
func plainClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	client := redis.NewClient(must(redis.ParseURL(url))(t))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// commandCounts returns how often a server has run each command, those inside scripts included.
func commandCounts(t *testing.T, server *redis.Client) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(must(server.Info(t.Context(), "commandstats").Result())(t)) {
		name, stats, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if calls, _, ok := strings.Cut(stats, ","); found && ok {
			counts[name] = must(strconv.Atoi(calls))(t)
		}
	}
	return counts
}

// commandsRun returns which commands the server has run since before, and how often, without the greetings of new
// connections, the watch over its role and the asking itself.
func commandsRun(t *testing.T, server *redis.Client, before map[string]int) map[string]int {
	t.Helper()
	run := map[string]int{}
	for name, count := range commandCounts(t, server) {
		if count != before[name] && name != "info" && name != "hello" && name != "blpop" {
			run[name] = count - before[name]
		}
	}
	return run
}
