package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// keyMemory is the memory of keys and values by the prefix before the hash tag. It includes the entries in Redis's tables of
// keys and expiries, but not the spare room of these tables.
type keyMemory map[string]struct{ keys, bytes int64 }

// memoryOfKeys reads the memory of every key from Redis.
func (s *service) memoryOfKeys() (keyMemory, error) {
	ctx := context.Background()
	found := keyMemory{}
	for cursor := uint64(0); ; {
		keys, next, err := s.redis.Scan(ctx, cursor, "*", 1000).Result()
		if err != nil {
			return nil, err
		}
		sizes := make([]*redis.IntCmd, len(keys))
		if _, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range keys {
				sizes[i] = p.MemoryUsage(ctx, key, 0) // of all elements
			}
			return nil
		}); err != nil {
			return nil, err
		}
		for i, key := range keys {
			name, _, _ := strings.Cut(key, "{")
			sum := found[name]
			sum.keys++
			sum.bytes += sizes[i].Val()
			found[name] = sum
		}
		if cursor = next; cursor == 0 {
			return found, nil
		}
	}
}

func (m keyMemory) String() string {
	text := "by MEMORY USAGE:\n"
	for _, name := range slices.Sorted(maps.Keys(m)) {
		text += fmt.Sprintf("%12d B in %6d keys %s\n", m[name].bytes, m[name].keys, name)
	}
	return text
}
