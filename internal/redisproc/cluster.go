package redisproc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const clusterLimit = 15 * time.Second

var errNoCluster = errors.New("no cluster within 15 s")

// Cluster is a running Redis Cluster. Its methods are safe for concurrent use, except
// that Kill and Restart of one node must not run at the same time.
type Cluster struct{ nodes }

// StartCluster runs a cluster of at least one primary on 127.0.0.1, without
// replicas, without persistence, with the slots spread evenly, and returns when
// every node reports cluster_state:ok. It takes about two seconds, the shortest time
// in which a Redis primary reports that.
//
// The context bounds StartCluster alone, not the life of the cluster;
// StartCluster gives up after 15 s in any case. It needs Redis 7 or Valkey, and
// fails as Start does. On an error, nothing is left running.
func StartCluster(ctx context.Context, primaries int) (*Cluster, error) {
	return startCluster(ctx, make([]string, primaries), primaries)
}

// StartClusterWithReplicas is StartCluster with one replica for each primary. The
// nodes keep their data and their view of the cluster in directories below dir, so
// that a killed node can be restarted. It returns when every replica is in sync.
func StartClusterWithReplicas(ctx context.Context, primaries int, dir string) (*Cluster, error) {
	dirs := make([]string, 2*primaries)
	for i := range dirs {
		dirs[i] = filepath.Join(dir, strconv.Itoa(i))
	}
	return startCluster(ctx, dirs, primaries)
}

// startCluster starts a node for each directory. The first are primaries, the
// others replicas of these in turn.
func startCluster(ctx context.Context, dirs []string, primaries int) (*Cluster, error) {
	if primaries < 1 {
		return nil, fmt.Errorf("redisproc: a cluster needs a primary, got %d", primaries)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, clusterLimit, errNoCluster)
	defer cancel()
	c := &Cluster{}
	for _, dir := range dirs {
		n, err := startOnFreePort(ctx, node{dir: dir}.config())
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	if err := join(ctx, c.nodes, primaries); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// PID returns the process id of a node, by its index in Addrs.
func (c *Cluster) PID(i int) int { return c.nodes[i].PID() }

// Kill ends a node, by its index in Addrs, with SIGKILL, and returns when it has
// ended.
func (c *Cluster) Kill(i int) error {
	if err := syscall.Kill(c.nodes[i].PID(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("redisproc: kill of node %d: %w", i, err)
	}
	<-c.nodes[i].Done()
	return nil
}

// Restart starts a node that has ended, by its index in Addrs, at its address and
// with its data. It returns when the node replies, possibly before the node knows
// the current primaries.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	n := &c.nodes[i]
	s, err := Start(ctx, n.config())
	if err == nil {
		n.Server = s
	}
	return err
}

// URL returns redis+cluster://127.0.0.1:p1,127.0.0.1:p2,... with every node.
func (c *Cluster) URL() string {
	return "redis+cluster://" + strings.Join(c.Addrs(), ",")
}
