package redisproc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slots     = 16384 // the hash slots of every Redis Cluster
	joinPause = 20 * time.Millisecond
)

// join makes one cluster of nodes that know nothing yet: it spreads the slots,
// makes the nodes meet, and waits until each of them serves.
func join(ctx context.Context, nodes []node) error {
	clients := make([]*redis.Client, len(nodes))
	for i, n := range nodes {
		clients[i] = n.client()
		defer clients[i].Close()
	}
	for i, client := range clients {
		if err := own(ctx, client, i, len(nodes)); err != nil {
			return fmt.Errorf("redisproc: slots of node %d: %w", i, err)
		}
	}
	for i, client := range clients {
		if err := meet(ctx, client, nodes[i+1:]); err != nil {
			return fmt.Errorf("redisproc: meeting of nodes: %w", err)
		}
	}
	for i, client := range clients {
		if err := waitUntilOK(ctx, client); err != nil {
			return fmt.Errorf("redisproc: state of node %d: %w", i, err)
		}
	}
	return nil
}

// own gives the i-th of n nodes its share of the slots, and an epoch of its own:
// nodes with equal epochs would first have to settle whose claims are newer.
func own(ctx context.Context, client *redis.Client, i, n int) error {
	if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
		return err
	}
	return client.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err()
}

// meet introduces a node to its peers. Every pair meets, as the news of a node
// would take seconds to reach the others by gossip.
func meet(ctx context.Context, client *redis.Client, peers []node) error {
	for _, peer := range peers {
		if err := client.ClusterMeet(ctx, loopback, strconv.Itoa(peer.port)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// waitUntilOK returns when the node knows an owner of every slot and serves its own.
func waitUntilOK(ctx context.Context, client *redis.Client) error {
	pause := time.NewTicker(joinPause)
	defer pause.Stop()
	for {
		info, err := client.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pause.C:
		}
	}
}
