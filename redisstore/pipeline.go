package redisstore

import (
	"context"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// readAll sends one HMGET for each id in one pipeline per server, and returns what each answered.
func (s *Store) readAll(ctx context.Context, ids []uuid.UUID, hmget func(redis.Pipeliner, uuid.UUID)) ([]*reply, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
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
		replies[i] = &reply{values: command.(*redis.SliceCmd).Val()}
	}
	return replies, nil
}
