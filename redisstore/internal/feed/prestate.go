package feed

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

const (
	// fedState is how many bytes of pre-state an event in the feed has at the most. A larger one stays with its transaction.
	fedState = 4 << 10
	// statesAtOnce is how many of them a pipeline reads: each may have 64 KiB.
	statesAtOnce = 64
)

// withPreState are the types of events that have the pre-state of their transaction.
var withPreState = []string{"transaction.rolled_back", "transaction.expired"}

// wantedState is an event whose pre-state is to be read.
type wantedState struct {
	of          *Taken
	transaction uuid.UUID
}

// readStates reads the pre-states that the trails' events are to have.
func (d *Feeds) readStates(ctx context.Context, trails []*Taken) error {
	var wanted []wantedState
	for _, t := range trails {
		t.states = map[uuid.UUID]string{}
		for _, entry := range t.entries {
			if e := TrailEvent(entry); e.Transaction != uuid.Nil && slices.Contains(withPreState, e.Type) {
				wanted = append(wanted, wantedState{t, e.Transaction})
			}
		}
	}
	for some := range slices.Chunk(wanted, statesAtOnce) {
		if err := d.readSomeStates(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (d *Feeds) readSomeStates(ctx context.Context, wanted []wantedState) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	found, err := redisclient.Pipelined(ctx, d.Client, wanted, func(p redis.Pipeliner, w wantedState) *redis.StringCmd {
		return p.HGet(ctx, d.Keys.Transaction(w.of.agent, w.transaction), "ps")
	})
	if err != nil {
		return err
	}
	for i, w := range wanted {
		if state, err := found[i].Result(); err == nil && len(state) <= fedState {
			w.of.states[w.transaction] = state
		}
	}
	return nil
}
