package redisclient

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// pools are the connection pools of all servers together. A cluster client asks Redis which nodes there are before it gives
// their statistics, and forgets what nodes counted that have left. So pools records each node when it appears.
type pools struct {
	mu     sync.Mutex
	counts map[*redis.Client]poolCounts // what each had counted at the last update, without those that are closed
	sum    poolSums
}

// poolCounts are what go-redis counts of one server. They begin again at 0 after 2^32-1.
type poolCounts struct{ hits, misses, timeouts, stale uint32 }

// poolSums are the same of all servers there have been. They never fall.
type poolSums struct{ hits, misses, timeouts, stale uint64 }

// connect records the servers of a client when they appear. Call it before the client is used.
func (p *pools) connect(client redis.UniversalClient) {
	switch client := client.(type) {
	case *redis.ClusterClient:
		client.OnNewNode(p.add)
	case *redis.Client:
		p.add(client)
	}
}

func (p *pools) add(server *redis.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update() // so that servers that have left are dropped even if the metrics are never scraped
	if p.counts == nil {
		p.counts = map[*redis.Client]poolCounts{}
	}
	p.counts[server] = poolCounts{}
}

// update brings the sums up to date and returns how many connections there are. It forgets servers that have left.
func (p *pools) update() (idle, all uint32) {
	for server, last := range p.counts {
		left := isClosed(server)
		stats := server.PoolStats()
		now := poolCounts{stats.Hits, stats.Misses, stats.Timeouts, stats.StaleConns}
		idle, all = idle+stats.IdleConns, all+stats.TotalConns
		if more := stats.PipelineStats; more != nil { // go-redis has two pools for each server: for commands, and for pipelines
			now.hits += more.Hits
			now.misses += more.Misses
			now.timeouts += more.Timeouts
			now.stale += more.StaleConns
			idle, all = idle+more.IdleConns, all+more.TotalConns
		}
		p.sum.add(last, now)
		if p.counts[server] = now; left {
			delete(p.counts, server)
		}
	}
	return min(idle, all), all // the two are not counted at one moment
}

func (s *poolSums) add(last, now poolCounts) {
	s.hits += uint64(now.hits - last.hits)
	s.misses += uint64(now.misses - last.misses)
	s.timeouts += uint64(now.timeouts - last.timeouts)
	s.stale += uint64(now.stale - last.stale)
}

var longAgo = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// isClosed says whether a client is closed, without asking its server: go-redis checks that before it checks the context.
func isClosed(server *redis.Client) bool {
	return errors.Is(server.Ping(longAgo).Err(), redis.ErrClosed)
}

// read returns the sums, and how many connections there are: idle, and all.
func (p *pools) read() (sum poolSums, idle, all uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle, all = p.update()
	return p.sum, idle, all
}
