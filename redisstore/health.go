package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// Ready returns nil when Redis can be read and written, and warnings about settings that endanger the data. It checks every
// primary of a cluster. Errors: *NotReadyError.
func (s *Store) Ready(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var mu sync.Mutex
	err = s.client.ForEachPrimary(ctx, func(ctx context.Context, primary *redis.Client) error {
		if err := s.client.Probe(ctx, primary); err != nil {
			return err
		}
		found := s.warnings(ctx, primary)
		mu.Lock()
		defer mu.Unlock()
		for _, warning := range found {
			if !slices.Contains(warnings, warning) {
				warnings = append(warnings, warning)
			}
		}
		return nil
	})
	return warnings, s.client.NotReady(err)
}

// warnings reads INFO, because a least-privilege user may run it but not CONFIG. A server that does not report its settings
// (an in-memory stand-in, a denied INFO) causes no warning.
func (s *Store) warnings(ctx context.Context, server redis.Cmdable) []string {
	memory := redisclient.Info(ctx, server, "memory")
	var found []string
	if policy := memory["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		found = append(found, "Redis evicts data when memory is full (maxmemory-policy "+policy+
			"): it must be noeviction, or revoked agents and spent budgets come back")
	}
	if memory["maxmemory"] == "0" {
		found = append(found, "Redis has no limit on its memory (maxmemory 0): it grows until the system ends it; set one "+
			"that the machine has room for")
	}
	if redisclient.Info(ctx, server, "persistence")["aof_enabled"] == "0" {
		found = append(found, warningOfLoss(ctx, server))
	}
	if s.config.Durability != Replicated {
		return found
	}
	if replication := redisclient.Info(ctx, server, "replication"); len(replication) > 0 && !hasReplica(replication) {
		found = append(found, "a Redis primary has no replica that follows it: with --durability=replicated its writes "+
			"cannot be confirmed, and answer outcome_unknown")
	}
	return found
}

// warningOfLoss returns the warning for a server without an append-only file.
func warningOfLoss(ctx context.Context, server redis.Cmdable) string {
	if hasSavedSinceItsStart(redisclient.Info(ctx, server, "server"), redisclient.Info(ctx, server, "persistence")) {
		return "Redis has no append-only file (appendonly no): when it ends, what was written since its last snapshot is lost, " +
			"revocations too"
	}
	return "Redis has no append-only file (appendonly no) and has made no snapshot since it started: when it ends, all that it " +
		"keeps is lost"
}

// hasSavedSinceItsStart compares Redis's own times. A server that has never saved reports its start as the last save.
func hasSavedSinceItsStart(general, persistence redisclient.InfoFields) bool {
	const seconds = 1_000_000 // of server_time_usec
	started := general.Number("server_time_usec")/seconds - general.Number("uptime_in_seconds")
	return persistence.Number("rdb_last_save_time") > started+1 // both are rounded
}

// hasReplica says whether a replica is online. A replica that is still receiving the full data set confirms nothing yet.
func hasReplica(replication map[string]string) bool {
	for name, value := range replication {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			return true
		}
	}
	return false
}
