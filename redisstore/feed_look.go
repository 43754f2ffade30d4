package redisstore

import (
	"context"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// lookedAtOnce is how many agents a look compares in one pipeline per server.
const lookedAtOnce = 500

// lookAtAll marks every agent of the organization whose trail ends with another event than it has in the feed. began is the
// time of Redis at which it was asked for.
func (d *feeds) lookAtAll(ctx context.Context, a *activeFeed, began int64) error {
	o, from := a.organization, "-"
	own, err := d.behind(ctx, o, []uuid.UUID{o}) // the organization's own trail
	if err != nil {
		return err
	}
	a.giveBack(own)
	for from != "" {
		entries, err := d.client.Redis().ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: d.keys.organizationAgents(o), Start: from, Stop: "+", ByLex: true, Count: lookedAtOnce,
		}).Result()
		if err != nil {
			return d.client.Classify(err, reads)
		}
		from = ""
		if len(entries) == lookedAtOnce {
			from = "(" + entries[lookedAtOnce-1]
		}
		behind, err := d.behind(ctx, o, indexedAgents(entries))
		if err != nil {
			return err
		}
		a.giveBack(behind)
		if err := d.flush(ctx, a); err != nil { // which also prolongs the lease
			return err
		}
		if a.leading.token == "" {
			return errFeedLost
		}
	}
	_, err = d.client.Run(ctx, flow{Owner: o}, finishLook, []string{d.keys.feedHead(o), d.keys.feedInstances(o)},
		a.leading.token, began, arrivalTime.Milliseconds())
	return err
}

// indexedAgents reads entries of the index of agents.
func indexedAgents(entries []string) []uuid.UUID {
	agents := make([]uuid.UUID, len(entries))
	for i, entry := range entries {
		agents[i], _ = members{}.id(entry)
	}
	return agents
}

// behind returns those of the agents whose last event is not in the feed.
func (d *feeds) behind(ctx context.Context, organization uuid.UUID, agents []uuid.UUID) ([]uuid.UUID, error) {
	if len(agents) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	names := make([]string, len(agents))
	for i, agent := range agents {
		names[i] = agent.String()
	}
	var cursors *redis.SliceCmd
	newest := make([]*redis.XMessageSliceCmd, len(agents))
	_, err := d.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		cursors = p.HMGet(ctx, d.keys.feedCursors(organization), names...)
		for i, agent := range agents {
			newest[i] = p.XRevRangeN(ctx, d.keys.events(agent), "+", "-", 1)
		}
		return nil
	})
	if err != nil {
		return nil, d.client.Classify(err, reads)
	}
	var behind []uuid.UUID
	for i, agent := range agents {
		cursor, _ := cursors.Val()[i].(string)
		if last := newest[i].Val(); len(last) > 0 && last[0].ID != cursor {
			behind = append(behind, agent)
		}
	}
	return behind, nil
}
