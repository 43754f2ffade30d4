package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// sweep removes the keys that belong to the organization, except its own record, those of its agents, and the list of those that were
// deleted: a repeated deletion needs these to find the others.
func (d *deletion) sweep(ctx context.Context, keys []string) error {
	var doomed [][]string
	var unclear, indexes []string
	for _, key := range keys {
		name, valid := d.keys.Parse(key)
		switch {
		case !valid || !d.cells[name.Cell] || slices.Contains([]string{"o", "a", "od"}, name.Kind):
		case d.isMine(name):
			doomed = append(doomed, []string{key})
			if name.Kind == "af" {
				indexes = append(indexes, key)
			}
		case slices.Contains([]string{"s", "t", "l", "i"}, name.Kind):
			unclear = append(unclear, key)
		}
	}
	owned, err := d.owned(ctx, unclear)
	if err != nil {
		return err
	}
	if err := d.removeFamilies(ctx, indexes); err != nil {
		return err
	}
	d.progress.Walked += int64(len(keys))
	return d.unlink(ctx, append(doomed, owned...))
}

// removeFamilies removes the families in indexes of agents, before the indexes themselves.
func (d *deletion) removeFamilies(ctx context.Context, indexes []string) error {
	for _, index := range indexes {
		name, _ := d.keys.Parse(index)
		for from := int64(0); ; from += kernel.WalkStep {
			entries, err := d.client.Redis().ZRange(ctx, index, from, from+kernel.WalkStep-1).Result()
			if err != nil {
				return d.client.Classify(err, reads)
			}
			var doomed [][]string
			for _, entry := range entries {
				if family, err := kernel.OfCell(name.ID).ID(entry); err == nil {
					doomed = append(doomed, []string{d.keys.Family(name.ID, family)})
				}
			}
			if err := d.unlink(ctx, doomed); err != nil {
				return err
			}
			if len(entries) < kernel.WalkStep {
				break
			}
		}
	}
	return nil
}

// isMine says whether the key's name alone shows that it belongs to the organization or to one of its agents.
func (d *deletion) isMine(name kernel.KeyName) bool {
	_, ofAgent := d.agents[name.ID]
	return ofAgent || name.ID == d.organization && (strings.HasPrefix(name.Kind, "o") || name.Kind == "ev")
}

// owned returns the keys whose values name the organization or its agents, each with its dependent keys.
func (d *deletion) owned(ctx context.Context, keys []string) ([][]string, error) {
	owners, err := redisclient.Pipelined(ctx, d.client, keys, func(p redis.Pipeliner, key string) *redis.Cmd {
		if name, _ := d.keys.Parse(key); name.Kind == "i" {
			return p.Do(ctx, "getrange", key, -kernel.StoredEnd, -1)
		}
		return p.Do(ctx, "hget", key, "a")
	})
	if err != nil {
		return nil, err
	}
	var mine [][]string
	for i, key := range keys {
		text, _ := owners[i].Text()
		owner, _ := uuid.FromBytes([]byte(text)) // uuid.Nil for a key that has just expired
		name, _ := d.keys.Parse(key)
		_, ofAgent := d.agents[owner]
		switch {
		case name.Kind == "i" && kernel.BelongsTo(text, d.organization):
			mine = append(mine, []string{key})
		case ofAgent && name.Kind == "s":
			mine = append(mine, []string{key, d.keys.Holds(name.ID, name.ID), d.keys.Leases(name.ID, name.ID),
				d.keys.SessionTransactions(name.ID, name.ID), d.keys.SessionRequests(name.ID, name.ID),
				d.keys.Parts(name.ID, name.ID), d.keys.Looks(name.ID, name.ID), d.keys.ClosedChildren(name.ID, name.ID)})
		case ofAgent:
			mine = append(mine, []string{key})
		}
	}
	return mine, nil
}

// unlink removes keys, WalkStep groups at a time. The keys of one group are in one slot, so one command removes them.
func (d *deletion) unlink(ctx context.Context, keys [][]string) error {
	for chunk := range slices.Chunk(keys, kernel.WalkStep) {
		removed, err := redisclient.Pipelined(ctx, d.client, chunk, func(p redis.Pipeliner, together []string) *redis.IntCmd {
			return p.Unlink(ctx, together...)
		})
		if err != nil {
			return err
		}
		for _, n := range removed {
			d.progress.Removed += n.Val()
		}
	}
	d.report(d.progress)
	return nil
}
