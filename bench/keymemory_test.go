package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// keyMemory is what the keys of each kind take, with their values, by what stands before the key's hash tag. Of the
// tables of all keys and of all expiries it has the entries, not their spare room.
type keyMemory map[string]struct{ keys, bytes int64 }

// memoryOfKeys asks Redis for every key.
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
