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

// join makes one cluster of new nodes: it spreads the slots over the primaries,
// which come first, makes the nodes meet, waits until each of them serves, and
// assigns the replicas to the primaries.
func join(ctx context.Context, nodes []node, primaries int) error {
	clients := make([]*redis.Client, len(nodes))
	for i, n := range nodes {
		clients[i] = redis.NewClient(&redis.Options{Network: "unix", Addr: n.socket()})
		defer clients[i].Close()
	}
	for i, client := range clients[:primaries] {
		if err := own(ctx, client, i, primaries); err != nil {
			return fmt.Errorf("redisproc: slots of node %d: %w", i, err)
		}
	}
	for i, client := range clients {
		if err := meet(ctx, client, nodes[i+1:]); err != nil {
			return fmt.Errorf("redisproc: meeting of nodes: %w", err)
		}
	}
	for i, client := range clients {
		if err := waitUntil(ctx, client, "CLUSTER INFO", "cluster_state:ok"); err != nil {
			return fmt.Errorf("redisproc: state of node %d: %w", i, err)
		}
	}
	return replicate(ctx, clients[:primaries], clients[primaries:])
}

// replicate assigns the replicas to the primaries in turn, and waits until they are
// in sync and every primary knows all of them.
func replicate(ctx context.Context, primaries, replicas []*redis.Client) error {
	for i, replica := range replicas {
		id, err := primaries[i%len(primaries)].Do(ctx, "CLUSTER", "MYID").Text()
		if err == nil {
			err = replica.Do(ctx, "CLUSTER", "REPLICATE", id).Err()
		}
		if err != nil {
			return fmt.Errorf("redisproc: replica %d: %w", i, err)
		}
	}
	for i, replica := range replicas {
		err := waitUntil(ctx, replica, "INFO replication", "master_link_status:up")
		for _, primary := range primaries {
			if err == nil {
				err = await(ctx, primary, "CLUSTER NODES", func(reply string) bool { return strings.Count(reply, "slave ") == len(replicas) })
			}
		}
		if err != nil {
			return fmt.Errorf("redisproc: replica %d: %w", i, err)
		}
	}
	return nil
}

// own gives the i-th of n nodes its share of the slots and a unique epoch: nodes
// with equal epochs would first have to resolve the conflict.
func own(ctx context.Context, client *redis.Client, i, n int) error {
	if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
		return err
	}
	return client.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err()
}

// meet introduces a node to its peers. Every pair meets, because gossip would take
// seconds to announce a node to the others.
func meet(ctx context.Context, client *redis.Client, peers []node) error {
	for _, peer := range peers {
		if err := client.ClusterMeet(ctx, loopback, strconv.Itoa(peer.port)).Err(); err != nil {
			return err
		}
	}
	return nil
}

// waitUntil returns when the reply to a command contains the text.
func waitUntil(ctx context.Context, client *redis.Client, command, text string) error {
	return await(ctx, client, command, func(reply string) bool { return strings.Contains(reply, text) })
}

// await returns when the reply to a command is as wanted.
func await(ctx context.Context, client *redis.Client, command string, holds func(reply string) bool) error {
	var words []any
	for word := range strings.FieldsSeq(command) {
		words = append(words, word)
	}
	return poll(ctx, joinPause, func() (bool, error) {
		reply, err := client.Do(ctx, words...).Text()
		return err == nil && holds(reply), err
	})
}
