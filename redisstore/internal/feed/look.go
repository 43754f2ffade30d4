package feed

import (
	"context"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// lookedAtOnce is how many agents a look compares in one pipeline per server.
const lookedAtOnce = 500

// lookAtAll marks every agent of the organization whose trail ends with another event than it has in the feed. began is the
// time of Redis at which it was asked for.
func (d *Feeds) lookAtAll(ctx context.Context, a *ActiveFeed, began int64) error {
	d.looks.Purge() // Redis may have lost what it had confirmed
	o, from := a.Organization, "-"
	own, err := d.behind(ctx, o, []uuid.UUID{o}) // the organization's own trail
	if err != nil {
		return err
	}
	a.giveBack(own)
	for from != "" {
		entries, err := d.Client.Redis().ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: d.Keys.OrganizationAgents(o), Start: from, Stop: "+", ByLex: true, Count: lookedAtOnce,
		}).Result()
		if err != nil {
			return d.Client.Classify(err, redisclient.Reads)
		}
		from = ""
		if len(entries) == lookedAtOnce {
			from = "(" + entries[lookedAtOnce-1]
		}
		behind, err := d.behind(ctx, o, kernel.Map(entries, agentOf))
		if err != nil {
			return err
		}
		a.giveBack(behind)
		if err := d.Flush(ctx, a); err != nil { // which also prolongs the lease
			return err
		}
		if a.Leading.Token == "" {
			return ErrFeedLost
		}
	}
	if err := d.dropCursors(ctx, o); err != nil {
		return err
	}
	_, err = d.Client.Run(ctx, redisclient.Flow{Owner: o}, FinishLook, []string{d.Keys.FeedHead(o), d.Keys.FeedInstances(o)},
		a.Leading.Token, began, ArrivalTime.Milliseconds())
	return err
}

// agentOf reads an entry of the index of agents.
func agentOf(entry string) uuid.UUID {
	agent, _ := kernel.Members{}.ID(entry)
	return agent
}

// behind returns those of the agents whose last event is not in the feed.
func (d *Feeds) behind(ctx context.Context, organization uuid.UUID, agents []uuid.UUID) ([]uuid.UUID, error) {
	if len(agents) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var cursors *redis.SliceCmd
	newest := make([]*redis.XMessageSliceCmd, len(agents))
	_, err := d.Client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		cursors = p.HMGet(ctx, d.Keys.FeedCursors(organization), kernel.Map(agents, uuid.UUID.String)...)
		for i, agent := range agents {
			newest[i] = p.XRevRangeN(ctx, d.Keys.Events(agent), "+", "-", 1)
		}
		return nil
	})
	if err != nil {
		return nil, d.Client.Classify(err, redisclient.Reads)
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
func (d *Feeds) dropCursors(ctx context.Context, organization uuid.UUID) error {
	cursors := d.Keys.FeedCursors(organization)
	for range mostSamples {
		known, err := d.Client.Redis().HLen(ctx, cursors).Result()
		if err != nil {
			return d.Client.Classify(err, redisclient.Reads)
		}
		agents, err := d.Client.Redis().ZCard(ctx, d.Keys.OrganizationAgents(organization)).Result()
		if err != nil || known <= agents+1 { // the organization has a trail of its own
			return d.Client.Classify(err, redisclient.Reads)
		}
		drawn, err := d.Client.Redis().HRandField(ctx, cursors, lookedAtOnce).Result()
		if err != nil {
			return d.Client.Classify(err, redisclient.Reads)
		}
		gone, err := d.gone(ctx, organization, drawn)
		if err != nil || len(gone) == 0 {
			return err
		}
		if err := d.Client.Redis().HDel(ctx, cursors, gone...).Err(); err != nil {
			return d.Client.Classify(err, redisclient.BestEffort)
		}
	}
	return nil
}

// gone returns those of the agents that have no record. No event of theirs can come any more.
func (d *Feeds) gone(ctx context.Context, organization uuid.UUID, agents []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	exist, err := redisclient.Pipelined(ctx, d.Client, agents, func(p redis.Pipeliner, agent string) *redis.IntCmd {
		id, _ := uuid.Parse(agent)
		return p.Exists(ctx, d.Keys.Agent(id))
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
