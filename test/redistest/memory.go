package redistest

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/test/suite"
)

// Memory returns the bytes that a redis-server uses, without the buffers of its connections: 20 to 40 KB for each, by how recently it was
// busy.
func Memory(tb testing.TB, server redis.UniversalClient) int64 {
	tb.Helper()
	var used, ofClients int64
	suite.Eventually(tb, "Redis counts the buffers, as it does a moment after it has made the first", func() bool {
		info := server.InfoMap(tb.Context(), "memory")
		suite.Must(fmt.Sscan(info.Item("Memory", "used_memory")+" "+info.Item("Memory", "mem_clients_normal"), &used, &ofClients))(tb)
		return ofClients > 0
	})
	return used - ofClients
}

// MemoryAtRest is Memory once that no longer changes: Redis rehashes tables and shrinks buffers in the background.
func MemoryAtRest(tb testing.TB, server redis.UniversalClient) int64 {
	tb.Helper()
	used := Memory(tb, server)
	suite.Eventually(tb, "the memory of Redis is at rest", func() bool {
		before := used
		time.Sleep(300 * time.Millisecond)
		used = Memory(tb, server)
		return used == before
	})
	return used
}
