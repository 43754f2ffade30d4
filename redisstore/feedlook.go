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
	if err := d.dropCursors(ctx, o); err != nil {
		return err
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
	ctx, cancel := context.WithTimeout(ctx, readTime)
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

// mostSamples is how many times a look draws cursors, to find those to forget.
const mostSamples = 100

// dropCursors forgets cursors of agents whose records are gone, while there are more cursors than agents.
func (d *feeds) dropCursors(ctx context.Context, organization uuid.UUID) error {
	cursors := d.keys.feedCursors(organization)
	for range mostSamples {
		known, err := d.client.Redis().HLen(ctx, cursors).Result()
		if err != nil {
			return d.client.Classify(err, reads)
		}
		agents, err := d.client.Redis().ZCard(ctx, d.keys.organizationAgents(organization)).Result()
		if err != nil || known <= agents+1 { // the organization has a trail of its own
			return d.client.Classify(err, reads)
		}
		drawn, err := d.client.Redis().HRandField(ctx, cursors, lookedAtOnce).Result()
		if err != nil {
			return d.client.Classify(err, reads)
		}
		gone, err := d.gone(ctx, organization, drawn)
		if err != nil || len(gone) == 0 {
			return d.client.Classify(err, reads)
		}
		if err := d.client.Redis().HDel(ctx, cursors, gone...).Err(); err != nil {
			return d.client.Classify(err, bestEffort)
		}
	}
	return nil
}

// gone returns those of the agents that have no record. No event of theirs can come any more.
func (d *feeds) gone(ctx context.Context, organization uuid.UUID, agents []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	exist := make([]*redis.IntCmd, len(agents))
	_, err := d.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, agent := range agents {
			id, _ := uuid.Parse(agent)
			exist[i] = p.Exists(ctx, d.keys.agent(id))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var gone []string
	for i, agent := range agents {
		if exist[i].Val() == 0 && agent != organization.String() {
			gone = append(gone, agent)
		}
	}
	return gone, nil
}
