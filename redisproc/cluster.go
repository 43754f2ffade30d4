package redisproc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const clusterLimit = 15 * time.Second

var errNoCluster = errors.New("no cluster within 15 s")

// Cluster is a running Redis Cluster of primaries without replicas, which keeps
// nothing. Its methods may be called from several goroutines.
type Cluster struct {
	nodes []node
}

// node is a server that also listens on a TCP port.
type node struct {
	*Server
	port int
}

// client speaks to the node by its socket.
func (n node) client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: n.socket(), Protocol: 2})
}

// StartCluster runs a cluster of at least one primary on 127.0.0.1, with the
// slots spread evenly, and returns when every node reports cluster_state:ok. It
// takes about two seconds: a Redis primary accepts no earlier that all is well.
//
// The context bounds StartCluster alone, not the life of the cluster;
// StartCluster gives up after 15 s in any case. It needs Redis 7 or Valkey, and
// fails as Start does. On an error, nothing is left running.
func StartCluster(ctx context.Context, primaries int) (*Cluster, error) {
	if primaries < 1 {
		return nil, fmt.Errorf("redisproc: a cluster needs a primary, got %d", primaries)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, clusterLimit, errNoCluster)
	defer cancel()
	c := &Cluster{}
	for range primaries {
		n, err := startNode(ctx)
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	if err := join(ctx, c.nodes); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// URL returns redis+cluster://127.0.0.1:p1,127.0.0.1:p2,... with every node.
func (c *Cluster) URL() string {
	return "redis+cluster://" + strings.Join(c.Addrs(), ",")
}

// Addrs returns the host:port of every node, in the order of their slots.
func (c *Cluster) Addrs() []string {
	return addrs(c.nodes)
}

// Stop ends all nodes at once, each as Server.Stop does, and joins their errors.
func (c *Cluster) Stop() error {
	return stopAll(c.nodes)
}
