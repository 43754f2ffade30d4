package redisstore

import (
	"bufio"
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Ready returns nil when Redis can be reached and written, on every primary of a cluster, and what about its settings
// endangers the data. Errors: ErrUnavailable.
func (s *Store) Ready(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	probe := s.keys.ready(uint16(rand.Uint32()))
	if err := s.client.Set(ctx, probe, 1, time.Minute).Err(); err != nil {
		return nil, classify(err, reads) // the probe means nothing: nothing was changed
	}
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return settingsWarnings(ctx, s.client), nil
	}
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, primary *redis.Client) error {
		return primary.Ping(ctx).Err()
	})
	if err != nil {
		return nil, classify(err, reads)
	}
	primary, err := cluster.MasterForKey(ctx, probe)
	if err != nil {
		return nil, classify(err, reads)
	}
	return settingsWarnings(ctx, primary), nil
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
