package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// pools are those of connections, of all servers together. A cluster client would ask Redis which nodes there are before it
// tells of them, and forget what those had counted that have left; so the nodes are kept here, as they come.
type pools struct {
	mu   sync.Mutex
	seen map[*redis.Client]poolCounts // what each had counted when it was looked at last; of those that are not closed
	sum  poolSums
}

// poolCounts are what go-redis counts of one server. They begin again at 0 after 2^32-1.
type poolCounts struct{ hits, misses, timeouts, stale uint32 }

// poolSums are the same of all servers there have been. They never fall.
type poolSums struct{ hits, misses, timeouts, stale uint64 }

// connect sees to it that the servers of a client are known as they come. It must be called before the client is used.
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
	p.look() // lest those that have left remain when nobody ever scrapes
	if p.seen == nil {
		p.seen = map[*redis.Client]poolCounts{}
	}
	p.seen[server] = poolCounts{}
}

// look brings the sums up to date and returns how many connections there are. It forgets servers that have left.
func (p *pools) look() (idle, all uint32) {
	for server, last := range p.seen {
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
		if p.seen[server] = now; left {
			delete(p.seen, server)
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

// isClosed says whether a client is, without asking its server: it looks at that before it looks whether there is time left.
func isClosed(server *redis.Client) bool {
	return errors.Is(server.Ping(longAgo).Err(), redis.ErrClosed)
}

func (p *pools) collect(to chan<- prometheus.Metric) {
	p.mu.Lock()
	idle, all := p.look()
	sum := p.sum
	p.mu.Unlock()
	for counter, value := range map[*prometheus.Desc]uint64{poolHits: sum.hits, poolMisses: sum.misses, poolTimeouts: sum.timeouts, poolStale: sum.stale} {
		to <- prometheus.MustNewConstMetric(counter, prometheus.CounterValue, float64(value))
	}
	to <- prometheus.MustNewConstMetric(poolSizes, prometheus.GaugeValue, float64(idle), "idle")
	to <- prometheus.MustNewConstMetric(poolSizes, prometheus.GaugeValue, float64(all-idle), "used")
}
