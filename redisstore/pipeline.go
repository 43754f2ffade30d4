package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// readAll sends one HMGET for each id in one pipeline per server, and returns what each answered. It waits for a
// place among those of the flow and of others.
func (s *Store) readAll(ctx context.Context, f flow, ids []uuid.UUID, hmget func(redis.Pipeliner, uuid.UUID)) (_ []*reply, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, seen := s.observe(ctx, "hmget", time.Now())
	seen.counted = opHMGet
	defer func() { seen.end(err) }()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.lists.enter(ctx, f); err != nil {
		return nil, err
	}
	defer s.lists.leave()
	s.counts.ofList.Observe(float64(len(ids)))
	commands, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			hmget(p, id)
		}
		return nil
	})
	if err != nil {
		return nil, s.trouble(err, reads)
	}
	replies := make([]*reply, len(ids))
	for i, command := range commands {
		if replies[i], err = fieldsOf(command.(*redis.SliceCmd)); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// fieldsOf returns what an HMGET answered: a value or nil for each field that was asked for.
func fieldsOf(command *redis.SliceCmd) (*reply, error) {
	values, asked := command.Val(), len(command.Args())-len([]string{"hmget", "key"})
	if len(values) != asked {
		return nil, fmt.Errorf("%w: %d values for %d fields", errReply, len(values), asked)
	}
	return &reply{values: values}, nil
}
