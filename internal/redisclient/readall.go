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
	_, replies, err := c.ReadTexts(ctx, f, Hashes{}, Hashes{keys, fields})
	return replies, err
}

// ReadTexts is ReadAll for two kinds of hashes. For each of the first it returns a text for each field, which costs less
// memory than values do: "" also for a field that the hash does not have. A server reads the first before the others.
func (c *Client) ReadTexts(ctx context.Context, f Flow, first, others Hashes) ([][]string, []*Reply, error) {
	commands, err := c.readPipeline(ctx, f, first, others)
	if err != nil {
		return nil, nil, err
	}
	texts, err := textsIn(commands[:len(first.Keys)], len(first.Fields))
	if err != nil {
		return nil, nil, err
	}
	replies, err := repliesIn(commands[len(first.Keys):], len(others.Fields))
	return texts, replies, err
}

func textsIn(commands []redis.Cmder, fields int) ([][]string, error) {
	texts := make([][]string, len(commands))
	for i, command := range commands {
		if texts[i] = command.(*redis.StringSliceCmd).Val(); len(texts[i]) != fields {
			return nil, fmt.Errorf("%w: %d texts for %d fields", ErrReply, len(texts[i]), fields)
		}
	}
	return texts, nil
}

func repliesIn(commands []redis.Cmder, fields int) ([]*Reply, error) {
	replies, room := make([]*Reply, len(commands)), make([]Reply, len(commands))
	for i, command := range commands {
		values := command.(*redis.SliceCmd).Val()
		if len(values) != fields {
			return nil, fmt.Errorf("%w: %d values for %d fields", ErrReply, len(values), fields)
		}
		room[i].Values = values
		replies[i] = &room[i]
	}
	return replies, nil
}

// readPipeline sends a command for each hash and returns them answered.
func (c *Client) readPipeline(ctx context.Context, f Flow, first, others Hashes) ([]redis.Cmder, error) {
	count := len(first.Keys) + len(others.Keys)
	if count == 0 {
		return nil, nil
	}
	began := time.Now()
	commands, err := c.sendReads(c.traced(ctx, "hmget"), f, count, func(p redis.Pipeliner) {
		for i, words := range c.readsOf(first, others) {
			var command redis.Cmder = redis.NewSliceCmd(ctx, words...)
			if i < len(first.Keys) {
				command = redis.NewStringSliceCmd(ctx, words...)
			}
			_ = p.Process(ctx, command) // queues it
		}
	})
	c.metrics.called(commandOperations["hmget"], began, err)
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
func (c *Client) readsOf(all ...Hashes) [][]any {
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

// Pipelined sends one command for each thing in one pipeline per server, and returns the commands. redis.Nil is no error: there is no such key.
func Pipelined[T any, C redis.Cmder](ctx context.Context, c *Client, things []T, command func(redis.Pipeliner, T) C) ([]C, error) {
	if len(things) == 0 {
		return nil, nil
	}
	sent := make([]C, len(things))
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, thing := range things {
			sent[i] = command(p, thing)
		}
		return nil
	})
	if err != nil && err != redis.Nil { // a refused connection leaves the commands without an error
		return nil, c.Classify(err, Reads)
	}
	for _, one := range sent {
		if err := one.Err(); err != nil && err != redis.Nil {
			return nil, c.Classify(err, Reads)
		}
	}
	return sent, nil
}
