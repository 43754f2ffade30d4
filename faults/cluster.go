package faults

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/redisproc"
)

const (
	primaries = 3
	// promotionPatience is how long a cluster may take to have a primary for every slot again: two seconds until its nodes
	// agree that one is gone, one for the vote, and the rest for a busy machine.
	promotionPatience = 60 * time.Second
	// keysAtATime is how many keys move at once, and movePause how long the others wait: long enough that the fleet meets
	// slots of which some keys are here and some there.
	keysAtATime = 20
	movePause   = 2 * time.Millisecond
)

// Cluster is a Redis Cluster of the test's own, whose primaries have one replica each.
type Cluster struct {
	Addrs []string // of the primaries, then of the replica of each in the same order, as they began

	t       testing.TB
	cluster *redisproc.Cluster
	nodes   []*redis.Client
	ids     []string // as the nodes call each other
}

// StartCluster runs a cluster until the test ends.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	started, err := redisproc.StartClusterWithReplicas(context.Background(), primaries, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Addrs: started.Addrs(), t: t, cluster: started}
	t.Cleanup(func() {
		for i := range c.Addrs {
			_ = started.Kill(i) // which is quicker than to let each save what it has; or it has ended
		}
	})
	for _, address := range c.Addrs {
		node := clientOf(t, address)
		c.nodes, c.ids = append(c.nodes, node), append(c.ids, c.do(node, "CLUSTER", "MYID").(string))
	}
	return c
}

// URL returns the address as the service takes it.
func (c *Cluster) URL() string { return c.cluster.URL() }

// Kill ends a node at once.
func (c *Cluster) Kill(node int) {
	c.t.Helper()
	if err := c.cluster.Kill(node); err != nil {
		c.t.Fatal(err)
	}
}

// Restart starts a node again that was killed, with the data that it has written.
func (c *Cluster) Restart(node int) {
	c.t.Helper()
	if err := c.cluster.Restart(context.Background(), node); err != nil {
		c.t.Fatal(err)
	}
}

// ForgetScripts makes every node forget all scripts.
func (c *Cluster) ForgetScripts() {
	c.t.Helper()
	for _, node := range c.nodes {
		c.do(node, "SCRIPT", "FLUSH")
	}
}

// SlotOf returns the slot of an agent, and of all that is the agent's: it goes by the last four digits of the id.
func (c *Cluster) SlotOf(agent *Agent) int {
	c.t.Helper()
	return int(c.do(c.nodes[len(c.nodes)-1], "CLUSTER", "KEYSLOT", "{"+agent.ID[len(agent.ID)-4:]+"}").(int64))
}

// PrimaryOf returns which node has the slot now, in the eyes of a node that runs.
func (c *Cluster) PrimaryOf(slot int) int {
	c.t.Helper()
	for _, node := range c.nodes {
		ranges, err := node.ClusterSlots(context.Background()).Result()
		if err != nil {
			continue
		}
		for _, r := range ranges {
			if r.Start <= slot && slot <= r.End {
				for i, address := range c.Addrs {
					if address == r.Nodes[0].Addr {
						return i
					}
				}
			}
		}
	}
	c.t.Fatalf("no node knows who has slot %d", slot)
	return 0
}

// Move moves a slot to another primary while it is in use, as redis-cli does it, and returns how many keys it had.
func (c *Cluster) Move(slot, to int) (keys int) {
	c.t.Helper()
	from := c.PrimaryOf(slot)
	if from == to {
		return 0
	}
	source, target := c.nodes[from], c.nodes[to]
	c.do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	c.do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
	host, port, _ := net.SplitHostPort(c.Addrs[to])
	for {
		found := c.do(source, "CLUSTER", "GETKEYSINSLOT", slot, keysAtATime).([]any)
		if len(found) == 0 {
			break
		}
		c.do(source, append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, found...)...)
		keys += len(found)
		time.Sleep(movePause)
	}
	for _, node := range []int{to, from, primaries - to - from} { // to the third as well: it would hear of it by gossip
		c.do(c.nodes[node], "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	}
	return keys
}

// AwaitPromotion returns when a replica of the primary has taken its place, and all slots are served again.
func (c *Cluster) AwaitPromotion(primary int) {
	c.t.Helper()
	c.await("a promotion", func() bool {
		replica := c.nodes[primary+primaries]
		return c.says(replica, "INFO replication", "role:master") && c.says(replica, "CLUSTER INFO", "cluster_state:ok")
	})
}

// AwaitReplica returns when a node is a replica that has what its primary has.
func (c *Cluster) AwaitReplica(node int) {
	c.t.Helper()
	c.await("a replica", func() bool {
		return c.says(c.nodes[node], "INFO replication", "role:slave") && c.says(c.nodes[node], "INFO replication", "master_link_status:up")
	})
}

func (c *Cluster) says(node *redis.Client, command, text string) bool {
	name, argument, _ := strings.Cut(command, " ")
	answer, err := node.Do(context.Background(), name, argument).Text()
	return err == nil && strings.Contains(answer, text)
}

func (c *Cluster) await(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(promotionPatience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("no %s in %v", what, promotionPatience)
		}
	}
}

func (c *Cluster) do(node *redis.Client, words ...any) any {
	c.t.Helper()
	answer, err := node.Do(context.Background(), words...).Result()
	if err != nil {
		c.t.Fatalf("%v: %v", words[:min(3, len(words))], err)
	}
	return answer
}
