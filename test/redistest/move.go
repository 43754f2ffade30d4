package redistest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// SlotMove moves the slot of a key from one node of a cluster to another.
type SlotMove struct {
	slot           int64
	Source, target *redis.Client
	To             string // address of the target
}

// NewMove returns the move of a key's slot between the two nodes at these addresses.
func NewMove(t *testing.T, key string, addresses []string) SlotMove {
	t.Helper()
	slot := SlotsOf(t, PlainClient(t, "redis://"+addresses[0]), []string{key})[0]
	from, to := addresses[0], addresses[1] // each has one half of the slots
	if slot >= 16384/2 {
		from, to = to, from
	}
	return SlotMove{slot, PlainClient(t, "redis://"+from), PlainClient(t, "redis://"+to), to}
}

// Begin has both nodes know that the slot is moving.
func (m SlotMove) Begin(t *testing.T) {
	t.Helper()
	Must(m.target.Do(t.Context(), "CLUSTER", "SETSLOT", m.slot, "IMPORTING", idOf(t, m.Source)).Result())(t)
	Must(m.Source.Do(t.Context(), "CLUSTER", "SETSLOT", m.slot, "MIGRATING", idOf(t, m.target)).Result())(t)
}

// Rest moves the keys that are not moved yet.
func (m SlotMove) Rest(t *testing.T) {
	t.Helper()
	for _, key := range Must(m.Source.ClusterGetKeysInSlot(t.Context(), int(m.slot), 100).Result())(t) {
		MoveKey(t, m.Source, m.To, key)
	}
}

// End gives the slot to the target.
func (m SlotMove) End(t *testing.T) {
	t.Helper()
	for _, node := range []*redis.Client{m.target, m.Source} {
		Must(node.Do(t.Context(), "CLUSTER", "SETSLOT", m.slot, "NODE", idOf(t, m.target)).Result())(t)
	}
}

// Said returns how often the nodes have replied with this error code.
func (m SlotMove) Said(t *testing.T, code string) int {
	t.Helper()
	sum := 0
	for _, node := range []*redis.Client{m.Source, m.target} {
		for line := range strings.Lines(Must(node.Info(t.Context(), "errorstats").Result())(t)) {
			if count, found := strings.CutPrefix(strings.TrimSpace(line), "errorstat_"+code+":count="); found {
				sum += Must(strconv.Atoi(count))(t)
			}
		}
	}
	return sum
}

func idOf(t *testing.T, node *redis.Client) string {
	t.Helper()
	return Must(node.Do(t.Context(), "CLUSTER", "MYID").Text())(t)
}

// MoveKey moves one key.
func MoveKey(t *testing.T, from *redis.Client, to, key string) {
	t.Helper()
	host, port, _ := strings.Cut(to, ":")
	if err := from.Migrate(t.Context(), host, port, key, 0, time.Second).Err(); err != nil {
		t.Fatal(err)
	}
}
