package faults

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
)

const (
	primaries = 3
	// promotionPatience is how long a cluster may take until every slot has a primary again: two seconds until the nodes
	// agree that one has failed, one for the election, and the rest for a busy machine.
	promotionPatience = 60 * time.Second
	// keysAtATime is how many keys one MIGRATE moves, and movePause the time between two of them: long enough for the
	// fleet to use slots whose keys are on both nodes.
	keysAtATime = 20
	movePause   = 2 * time.Millisecond
)

// Cluster is a Redis Cluster of one test. Each primary has one replica.
type Cluster struct {
	Addrs []string // of the primaries, then of their replicas in the same order, as at the start

	t       testing.TB
	cluster *redisproc.Cluster
	nodes   []*redis.Client
	ids     []string // node ids
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
			_ = started.Kill(i) // quicker than a clean stop, which saves; fails if the node has ended
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

// Kill ends a node with SIGKILL.
func (c *Cluster) Kill(node int) {
	c.t.Helper()
	if err := c.cluster.Kill(node); err != nil {
		c.t.Fatal(err)
	}
}

// Restart restarts a killed node with the data that it has written.
func (c *Cluster) Restart(node int) {
	c.t.Helper()
	if err := c.cluster.Restart(context.Background(), node); err != nil {
		c.t.Fatal(err)
	}
}

// Freeze stops the process of a node with SIGSTOP until Thaw.
func (c *Cluster) Freeze(node int) { c.signal(node, syscall.SIGSTOP) }

// Thaw resumes a frozen node.
func (c *Cluster) Thaw(node int) { c.signal(node, syscall.SIGCONT) }

func (c *Cluster) signal(node int, s syscall.Signal) {
	c.t.Helper()
	if err := syscall.Kill(c.cluster.PID(node), s); err != nil {
		c.t.Fatal(err)
	}
}

// FlushScripts removes all scripts from every node.
func (c *Cluster) FlushScripts() {
	c.t.Helper()
	for _, node := range c.nodes {
		c.do(node, "SCRIPT", "FLUSH")
	}
}

// SlotOf returns the slot of the agent with this id and all its data. Keys hash by the last four digits of the agent's id.
func (c *Cluster) SlotOf(agent string) int {
	c.t.Helper()
	return int(c.do(c.nodes[len(c.nodes)-1], "CLUSTER", "KEYSLOT", "{"+agent[len(agent)-4:]+"}").(int64))
}

// PrimaryOf returns the index of the node that serves the slot, according to a running node.
func (c *Cluster) PrimaryOf(slot int) int {
	c.t.Helper()
	for _, node := range c.nodes {
		ranges, _ := node.ClusterSlots(context.Background()).Result() // none if it does not run
		for _, r := range ranges {
			if r.Start <= slot && slot <= r.End {
				return slices.Index(c.Addrs, r.Nodes[0].Addr)
			}
		}
	}
	c.t.Fatalf("no node knows who has slot %d", slot)
	return 0
}

// awaitOneView returns when the primaries agree on the epoch and the slots of each. A node that has not heard of a target's new epoch may
// believe an older claim of the source, and let the target drop the slot with its keys when the source's epoch has grown as well.
func (c *Cluster) awaitOneView() {
	c.t.Helper()
	waitUntil(c.t, promotionPatience, "the primaries agree on epochs and slots", func() bool {
		seen := c.seenBy(0)
		return len(seen) > 0 && slices.Equal(seen, c.seenBy(1)) && slices.Equal(seen, c.seenBy(2))
	})
}

// awaitServing returns when all primaries serve all slots.
func (c *Cluster) awaitServing() {
	c.t.Helper()
	waitUntil(c.t, promotionPatience, "the cluster serves", func() bool {
		for node := range primaries {
			if !c.says(c.nodes[node], "CLUSTER INFO", "cluster_state:ok") || !c.says(c.nodes[node], "INFO replication", "role:master") {
				return false
			}
		}
		return true
	})
}

// seenBy returns id, epoch and slots of each primary as a node sees them, in order of id.
func (c *Cluster) seenBy(node int) (view []string) {
	answer, _ := c.nodes[node].ClusterNodes(context.Background()).Result()
	for line := range strings.Lines(answer) {
		// id, address, flags, primary, ping, pong, epoch, link, slots ...
		if words := strings.Fields(line); len(words) >= 8 && strings.Contains(words[2], "master") {
			view = append(view, words[0]+" "+words[6]+" "+strings.Join(words[8:], " "))
		}
	}
	slices.Sort(view)
	return view
}

// Move migrates a slot to another primary while clients use it, as redis-cli does, and returns how many keys it moved.
func (c *Cluster) Move(slot, to int) (keys int) {
	c.t.Helper()
	c.awaitOneView()
	from := c.PrimaryOf(slot)
	if from == to {
		return 0
	}
	source, target := c.nodes[from], c.nodes[to]
	c.do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	c.do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
	host, port, _ := net.SplitHostPort(c.Addrs[to])
	options := []any{"KEYS"}
	for began := time.Now(); ; {
		found := c.do(source, "CLUSTER", "GETKEYSINSLOT", slot, keysAtATime).([]any)
		if len(found) == 0 {
			break
		}
		err := source.Do(context.Background(), slices.Concat([]any{"MIGRATE", host, port, "", 0, 5000}, options, found)...).Err()
		refused := err != nil && strings.Contains(err.Error(), "CLUSTERDOWN") // by a target that has not heard of others for a while: the keys stay
		late := redis.HasErrorPrefix(err, "IOERR") || errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case err == nil:
			keys += len(found)
		case (refused || late) && time.Since(began) < promotionPatience:
			c.awaitServing()
			if late { // the target may have taken keys after the source gave up: the source still has them, with newer values
				options = []any{"REPLACE", "KEYS"}
			}
		default:
			c.t.Fatalf("MIGRATE of slot %d: %v", slot, err)
		}
		time.Sleep(movePause)
	}
	for _, node := range []int{to, from, primaries - to - from} { // the third too: gossip would reach it later
		c.do(c.nodes[node], "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	}
	return keys
}

// AwaitPromotion returns when the replica of the primary has replaced it and all slots are served again. Two nodes that are as far apart
// as there are primaries have the same slots.
func (c *Cluster) AwaitPromotion(primary int) {
	c.t.Helper()
	waitUntil(c.t, promotionPatience, "the replica is promoted", func() bool {
		replica := c.nodes[(primary+primaries)%len(c.nodes)]
		return c.says(replica, "INFO replication", "role:master") && c.says(replica, "CLUSTER INFO", "cluster_state:ok")
	})
}

// AwaitReplica returns when a node is a replica in sync with its primary.
func (c *Cluster) AwaitReplica(node int) {
	c.t.Helper()
	waitUntil(c.t, promotionPatience, "a replica follows", func() bool {
		return c.says(c.nodes[node], "INFO replication", "role:slave") && c.says(c.nodes[node], "INFO replication", "master_link_status:up")
	})
}

func (c *Cluster) says(node *redis.Client, command, text string) bool {
	name, argument, _ := strings.Cut(command, " ")
	answer, err := node.Do(context.Background(), name, argument).Text()
	return err == nil && strings.Contains(answer, text)
}

func (c *Cluster) do(node *redis.Client, words ...any) any {
	c.t.Helper()
	answer, err := node.Do(context.Background(), words...).Result()
	if err != nil {
		c.t.Fatalf("%v: %v", words[:min(3, len(words))], err)
	}
	return answer
}
