package redisclient

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Hashes are hashes of which the same fields are read.
type Hashes struct{ Keys, Fields []string }

// ReadAll reads the same fields of many hashes (HMGET), in one pipeline per server, and returns what each answered: a value or
// nil for each field. It waits for a place among the callers of the flow and of others.
func (c *Client) ReadAll(ctx context.Context, f Flow, keys []string, fields ...string) ([]*Reply, error) {
	commands, err := c.readPipeline(ctx, f, []Hashes{{keys, fields}}, func(words []any) redis.Cmder { return redis.NewSliceCmd(ctx, words...) })
	if err != nil {
		return nil, err
	}
	replies := make([]*Reply, len(keys))
	room := make([]Reply, len(keys))
	for i, command := range commands {
		values := command.(*redis.SliceCmd).Val()
		if len(values) != len(fields) {
			return nil, fmt.Errorf("%w: %d values for %d fields", ErrReply, len(values), len(fields))
		}
		room[i].Values = values
		replies[i] = &room[i]
	}
	return replies, nil
}

// ReadTexts is ReadAll for different kinds of hashes, and returns a text for each field: "" for one that the hash does not
// have. A server reads its hashes in the order given.
func (c *Client) ReadTexts(ctx context.Context, f Flow, all ...Hashes) ([][]string, error) {
	commands, err := c.readPipeline(ctx, f, all, func(words []any) redis.Cmder { return redis.NewStringSliceCmd(ctx, words...) })
	if err != nil {
		return nil, err
	}
	texts := make([][]string, len(commands))
	at := 0
	for _, hashes := range all {
		for range hashes.Keys {
			texts[at] = commands[at].(*redis.StringSliceCmd).Val()
			if len(texts[at]) != len(hashes.Fields) {
				return nil, fmt.Errorf("%w: %d texts for %d fields", ErrReply, len(texts[at]), len(hashes.Fields))
			}
			at++
		}
	}
	return texts, nil
}

// readPipeline sends a command for each hash and returns them answered.
func (c *Client) readPipeline(ctx context.Context, f Flow, all []Hashes, newCommand func([]any) redis.Cmder) ([]redis.Cmder, error) {
	count := 0
	for _, hashes := range all {
		count += len(hashes.Keys)
	}
	if count == 0 {
		return nil, nil
	}
	began := time.Now()
	commands, err := c.sendReads(c.traced(ctx, "hmget"), f, count, func(p redis.Pipeliner) {
		for _, words := range c.readsOf(all) {
			_ = p.Process(ctx, newCommand(words)) // queues it
		}
	})
	c.metrics.called(opHMGet, began, err)
	return commands, err
}

func (c *Client) sendReads(ctx context.Context, f Flow, count int, queue func(redis.Pipeliner)) ([]redis.Cmder, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if err := c.lists.Acquire(ctx, f); err != nil {
		return nil, err
	}
	defer c.lists.Release()
	c.metrics.listSizes.Observe(float64(count))
	pipeline := c.redis.Pipeline()
	queue(pipeline)
	commands, err := pipeline.Exec(ctx)
	if err != nil {
		return nil, c.Classify(err, Reads)
	}
	return commands, nil
}

var hmget any = "hmget"

// readsOf returns the words of each command, all in one piece of memory. They point to the keys and fields, except that a
// cluster client finds the server by a key only if it is a string.
func (c *Client) readsOf(all []Hashes) [][]any {
	_, isCluster := c.redis.(*redis.ClusterClient)
	commands, size := 0, 0
	for _, hashes := range all {
		commands, size = commands+len(hashes.Keys), size+len(hashes.Keys)*(2+len(hashes.Fields))
	}
	reads, words := make([][]any, 0, commands), make([]any, 0, size)
	for _, hashes := range all {
		for i := range hashes.Keys {
			start := len(words)
			if words = append(words, hmget, &hashes.Keys[i]); isCluster {
				words[start+plainKeyWord] = hashes.Keys[i]
			}
			for field := range hashes.Fields {
				words = append(words, &hashes.Fields[field])
			}
			reads = append(reads, words[start:len(words):len(words)])
		}
	}
	return reads
}
