package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// AudiencesFrom returns from when on access tokens for the issuer alone name it as their audience. Instances of the version before
// refuse such tokens, so on a Redis that an earlier version has used it is an access token's lifetime after the first call. Redis
// remembers that; while it refuses to, the lifetime begins with this call. On any other Redis it is the zero time. The time is
// one of this instance's clock, whatever Redis's says. Call it before KeepIssuer and KeepFirstKey. Errors: ErrUnavailable.
func (s *Store) AudiencesFrom(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if from, err := s.storedAudiencesFrom(ctx); err != redis.Nil {
		return from, s.client.Classify(err, reads)
	}
	first, err := s.firstAudiencesFrom(ctx)
	if err != nil {
		return time.Time{}, s.client.Classify(err, reads)
	}
	place, ms, unstored := s.keys.audiencesFrom(), int64(0), time.Time{}
	if !first.IsZero() {
		ms, unstored = first.UnixMilli(), time.Now().Add(s.config.AccessLifetime)
	}
	if err := s.client.Write(ctx, place, redis.NewBoolCmd(ctx, "set", place, strconv.FormatInt(ms, 10), "nx")); err != nil {
		return unstored, nil
	}
	from, err := s.storedAudiencesFrom(ctx)
	if err != nil {
		return time.Time{}, s.client.Classify(err, reads)
	}
	return from, nil
}

// storedAudiencesFrom returns redis.Nil when nothing is stored.
func (s *Store) storedAudiencesFrom(ctx context.Context) (time.Time, error) {
	var stored *redis.StringCmd
	var clock *redis.TimeCmd
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		stored, clock = p.Get(ctx, s.keys.audiencesFrom()), p.Time(ctx)
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	ms, err := stored.Int64()
	if err != nil || ms == 0 {
		return time.Time{}, err
	}
	return time.Now().Add(time.UnixMilli(ms).Sub(clock.Val())), nil
}

// firstAudiencesFrom returns what the first instance of this version stores: a time of Redis's clock.
func (s *Store) firstAudiencesFrom(ctx context.Context) (time.Time, error) {
	var used []*redis.IntCmd
	var clock *redis.TimeCmd
	_, err := s.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range []string{s.keys.issuer(), s.keys.keyRecords(SigningKeys), s.keys.keyRecords(TokenKeys), s.keys.holdings()} {
			used = append(used, p.Exists(ctx, key))
		}
		clock = p.Time(ctx)
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	for _, exists := range used {
		if exists.Val() != 0 {
			return clock.Val().Add(s.config.AccessLifetime), nil
		}
	}
	return time.Time{}, nil
}
