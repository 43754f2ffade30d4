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
// every primary is reached and asked for its settings, and one of them written. Errors: ErrUnavailable.
func (s *Store) Ready(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	probe := s.keys.ready(uint16(rand.Uint32()))
	if err := s.client.Set(ctx, probe, 1, time.Minute).Err(); err != nil {
		return nil, s.trouble(err, reads) // the probe means nothing: nothing was changed
	}
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return settingsWarnings(ctx, s.client), nil
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redis.Client) error {
		if err := primary.Ping(ctx).Err(); err != nil {
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
	return warnings, s.trouble(err, reads)
}

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
