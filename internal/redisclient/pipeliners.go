package redisclient

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// pipeliners holds a pipeliner for each server, by its address: the nodes of a cluster come and go.
type pipeliners struct {
	newConfirmer func() *confirmer
	sizes        prometheus.Observer // observes how many calls share a pipeline
	merges       prometheus.Observer // observes how many calls share a command
	cluster      bool

	last      atomic.Pointer[pipeliner] // that was asked for; most clients have only one server
	mu        sync.RWMutex
	byAddress map[string]*pipeliner
}

func (l *pipeliners) of(server *redis.Client) *pipeliner {
	if last := l.last.Load(); last != nil && last.server == server {
		return last
	}
	found := l.find(server)
	if !l.cluster { // there every call has another
		l.last.Store(found)
	}
	return found
}

func (l *pipeliners) find(server *redis.Client) *pipeliner {
	address := server.Options().Addr
	l.mu.RLock()
	known := l.byAddress[address]
	l.mu.RUnlock()
	if known != nil && known.server == server {
		return known
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known = l.byAddress[address]; known == nil || known.server != server {
		if l.byAddress == nil {
			l.byAddress = map[string]*pipeliner{}
		}
		known = l.begin(server)
		known.confirmed = l.begin(server)
		known.confirmed.confirms = l.newConfirmer()
		l.byAddress[address] = known
	}
	return known
}

func (l *pipeliners) begin(server *redis.Client) *pipeliner {
	p := newPipeliner(server)
	p.sizes, p.merges = l.sizes, l.merges
	p.byTag.Store(l.cluster)
	return p
}

func (l *pipeliners) all() []*pipeliner {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*pipeliner, 0, len(l.byAddress))
	for _, one := range l.byAddress {
		all = append(all, one)
	}
	return all
}
