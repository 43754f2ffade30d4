package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/internal/token"
	"remit/money"
	"remit/redisstore"
	"remit/test/redistest"
)

// objects is the number of objects to create. Redis's own memory, such as spare room in tables, is divided by it.
//
// Redis's tables double, so their spare room depends on the number: from none to as much as is used. With this number it is
// about the mean.
const objects = 24_000

// BenchmarkMemory measures the Redis memory of a live session and of a refresh family.
func BenchmarkMemory(b *testing.B) {
	onlyLong(b)
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			each, keys := bytesEach(b, kind, objects)
			if testing.Verbose() {
				b.Log(keys)
			}
			reportAll(b, map[string]float64{"B/" + kind.name: each})
		})
	}
}

// kind is a kind of object to create.
type kind struct {
	name   string
	agents int // owners, in equal shares: an agent has at most 10,000 families
	make   func(ctx context.Context, s *service, a agent) error
}

var kinds = []kind{{"session", 1, makeSession}, {"family", 8, makeFamily}}

// makeSession creates a session and charges it once, so that it is in use.
func makeSession(ctx context.Context, s *service, a agent) error {
	key := redisstore.APIKey{Organization: s.org, Hash: token.Hash(s.key)}
	session, err := s.store.CreateSession(ctx, key, redisstore.NewSession{
		Agent: a.id, MaxActions: 1000, MaxValue: 100 * money.USD, Lifetime: time.Hour,
	})
	if err != nil {
		return err
	}
	_, err = s.store.Charge(ctx, redisstore.Caller{Key: &key}, session.ID, redisstore.Charge{Count: 1, Value: money.USD / 100})
	return err
}

func makeFamily(ctx context.Context, s *service, a agent) error {
	_, err := s.store.ExchangeSecret(ctx, a.id, token.Hash(a.secret), redisstore.GrantRequest{})
	return err
}

// trail is how many events fill an agent's audit trail, so that it does not grow during the measurement.
const trail = 1200

// bytesEach returns by how many bytes the memory of Redis grows per object, including indexes and tables. Keys lists the
// memory by kind of key.
func bytesEach(tb testing.TB, k kind, objects int) (each float64, keys keyMemory) {
	tb.Helper()
	s := startServiceOn(tb, redisproc.Config{}, observers{})
	agents := make([]agent, k.agents)
	for i := range agents {
		agents[i] = s.newAgent(tb)
	}
	makeSome := func(n int) {
		must(spread(8, n, func(i int) error { return k.make(context.Background(), s, agents[i%len(agents)]) }))(tb)
	}
	makeSome(trail * k.agents)
	before := redistest.MemoryAtRest(tb, s.redis)
	makeSome(objects)
	after := redistest.MemoryAtRest(tb, s.redis)
	return float64(after-before) / float64(objects), s.memoryOfKeys(tb)
}

// keyMemory is the memory of keys and values by the prefix before the hash tag. It includes the entries in Redis's tables of
// keys and expiries, but not the spare room of these tables.
type keyMemory map[string]struct{ keys, bytes int64 }

func (s *service) memoryOfKeys(tb testing.TB) keyMemory {
	tb.Helper()
	ctx := context.Background()
	found := keyMemory{}
	keys := s.redis.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		name, _, _ := strings.Cut(keys.Val(), "{")
		sum := found[name]
		sum.keys++
		sum.bytes += s.redis.MemoryUsage(ctx, keys.Val(), 0).Val() // of all elements
		found[name] = sum
	}
	noError(tb, keys.Err())
	return found
}

func (m keyMemory) String() string {
	text := "by MEMORY USAGE:\n"
	for _, name := range slices.Sorted(maps.Keys(m)) {
		text += fmt.Sprintf("%12d B in %6d keys %s\n", m[name].bytes, m[name].keys, name)
	}
	return text
}
