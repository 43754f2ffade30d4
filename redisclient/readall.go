package redisclient

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReadAll reads the same fields of many hashes (HMGET), in one pipeline per server, and returns what each answered: a value or
// nil for each field. It waits for a place among the callers of the flow and of others.
func (c *Client) ReadAll(ctx context.Context, f Flow, keys []string, fields ...string) ([]*Reply, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	began := time.Now()
	replies, err := c.readAll(c.traced(ctx, "hmget"), f, keys, fields)
	c.metrics.called(opHMGet, began, err)
	return replies, err
}

func (c *Client) readAll(ctx context.Context, f Flow, keys, fields []string) ([]*Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if err := c.lists.Acquire(ctx, f); err != nil {
		return nil, err
	}
	defer c.lists.Release()
	c.metrics.listSizes.Observe(float64(len(keys)))
	commands, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.HMGet(ctx, key, fields...)
		}
		return nil
	})
	if err != nil {
		return nil, c.Classify(err, Reads)
	}
	replies := make([]*Reply, len(keys))
	for i, command := range commands {
		values := command.(*redis.SliceCmd).Val()
		if len(values) != len(fields) {
			return nil, fmt.Errorf("%w: %d values for %d fields", ErrReply, len(values), len(fields))
		}
		replies[i] = &Reply{Values: values}
	}
	return replies, nil
}
