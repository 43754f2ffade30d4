package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"remit/internal/keys"
	"remit/internal/service/operator"
	"remit/redisstore"
)

const (
	// redisRetry is the pause before the start tries Redis again.
	redisRetry = 250 * time.Millisecond
	// redisWarning is the pause between two lines of the log that say why. The first cause may hide the real one: a slow connection, a
	// certificate that is not trusted.
	redisWarning = 10 * time.Second
)

// load gives the server its first settings and keys. It retries while Redis cannot be reached.
func (s *service) load(ctx context.Context) error {
	var warned time.Time
	for {
		err := s.loadOnce(ctx)
		if !errors.Is(err, redisstore.ErrUnavailable) && !errors.Is(err, redisstore.ErrOutcomeUnknown) {
			return err
		}
		if time.Since(warned) >= redisWarning {
			s.log.Warn("waiting for Redis", "cause", err)
			warned = time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("Redis could not be reached: %w", context.Cause(ctx))
		case <-time.After(redisRetry):
		}
	}
}

// loadOnce reads the settings before the keys: a server without keys accepts no token, so none of a suspended organization.
func (s *service) loadOnce(ctx context.Context) error {
	if err := s.settings.read(ctx); err != nil {
		return err
	}
	keyring, err := s.keys.Keyring(ctx)
	if err == nil {
		s.server.SetKeyring(keyring)
	}
	return err
}

// followRedis keeps the keys and settings as Redis has them, until ctx ends.
func (s *service) followRedis(ctx context.Context) {
	go poll(ctx, operator.PollInterval, s.settings.read, func(cause error) {
		s.log.Warn("suspensions could not be read; keeping the previous ones", "cause", cause)
	})
	go poll(ctx, s.store.FoldPause(), s.store.FoldUsage, func(cause error) {
		s.log.Warn("usage could not be folded; trying again", "cause", cause)
	})
	if !s.keys.InRedis() {
		return
	}
	s.keys.LogStorage()
	s.server.FollowKeys(s.keys.Keyring)
	go poll(ctx, keys.PollInterval, s.server.ReadKeys, func(cause error) {
		s.log.Warn("keys could not be read; keeping the previous ones", "cause", cause)
	})
}

// poll calls read at every interval until ctx ends. Of successive failures it reports the first.
func poll(ctx context.Context, interval time.Duration, read func(context.Context) error, report func(error)) {
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		err := read(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			report(err)
		}
		failing = err != nil
	}
}
