package redisstore

import (
	"bufio"
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Ready returns nil when Redis can be reached and written, and what about its settings endangers the data. Of a cluster
// every primary is written and asked for its settings. Errors: *NotReadyError.
func (s *Store) Ready(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		if err := probe(ctx, s.client, s.keys.ready(anyCell())); err != nil {
			return nil, notReady(err)
		}
		return settingsWarnings(ctx, s.client), nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redis.Client) error {
		if err := s.probePrimary(ctx, cluster, primary); err != nil {
			return err
		}
		found := settingsWarnings(ctx, primary)
		mu.Lock()
		defer mu.Unlock()
		if len(warnings) == 0 {
			warnings = found
		}
		return nil
	})
	return warnings, notReady(err)
}

// probe writes a key that means nothing and is soon gone.
func probe(ctx context.Context, server redis.Cmdable, key string) error {
	return server.Set(ctx, key, 1, time.Minute).Err()
}

// probeDraws is how many cells are tried until one is on the primary that is to be written: even one with a hundredth of the
// slots is missed once in 30,000 times.
const probeDraws = 1024

// probePrimary writes to a primary of a cluster, or only asks for an answer if no cell was found on it: it may be new, and
// have no slots yet.
func (s *Store) probePrimary(ctx context.Context, cluster *redis.ClusterClient, primary *redis.Client) error {
	for range probeDraws {
		key := s.keys.ready(anyCell())
		if owner, err := cluster.MasterForKey(ctx, key); err == nil && owner == primary {
			return probe(ctx, cluster, key) // which goes after a slot that has just moved
		}
	}
	return primary.Ping(ctx).Err()
}

func anyCell() uint16 { return uint16(rand.Uint32()) }

// settingsWarnings reads INFO, which a least-privilege user may have while CONFIG is denied. A server that says
// nothing of its settings (an in-memory stand-in, a denied INFO) earns no warning.
func settingsWarnings(ctx context.Context, server redis.Cmdable) []string {
	info, err := server.Info(ctx, "memory").Result()
	if err != nil {
		return nil
	}
	lines := bufio.NewScanner(strings.NewReader(info))
	for lines.Scan() {
		policy, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), "maxmemory_policy:")
		if found && policy != "noeviction" {
			return []string{"Redis evicts data when memory is full (maxmemory-policy " + policy +
				"): it must be noeviction, or revoked agents and spent budgets come back"}
		}
	}
	return nil
}
