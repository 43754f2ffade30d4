package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// BootstrapHash returns the SHA-256 of the stored bootstrap token, and whether there is one. Errors: ErrUnavailable.
func (s *Store) BootstrapHash(ctx context.Context) (hash [32]byte, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	kept, err := s.client.Redis().Get(ctx, s.keys.bootstrap()).Result()
	switch {
	case err == redis.Nil:
		return hash, false, nil
	case err != nil:
		return hash, false, s.client.Classify(err, reads)
	case len(kept) != len(hash):
		return hash, false, fmt.Errorf("%w: a bootstrap token's hash of %d bytes", errReply, len(kept))
	}
	return [32]byte([]byte(kept)), true, nil
}

// KeepFirstBootstrapHash stores the hash unless one is stored already; BootstrapHash returns the stored one. It is safe to
// repeat. Errors: ErrUnavailable.
func (s *Store) KeepFirstBootstrapHash(ctx context.Context, hash [32]byte) error {
	return s.setBootstrapHash(ctx, hash, "nx")
}

// SetBootstrapHash replaces the stored hash. It is safe to repeat. Errors: ErrUnavailable.
func (s *Store) SetBootstrapHash(ctx context.Context, hash [32]byte) error {
	return s.setBootstrapHash(ctx, hash)
}

func (s *Store) setBootstrapHash(ctx context.Context, hash [32]byte, condition ...any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	place := s.keys.bootstrap()
	command := redis.NewCmd(ctx, append([]any{"set", place, hash[:]}, condition...)...)
	if err := s.client.Write(ctx, place, command); err != nil && err != redis.Nil {
		return s.client.Classify(err, reads) // repeating it is harmless
	}
	return nil
}
