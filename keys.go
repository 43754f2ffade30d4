package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"remit/redisstore"
	"remit/server"
	"remit/token"
)

// keyRetry is how long the start waits before it asks Redis for its keys again.
const keyRetry = 250 * time.Millisecond

// loadKeys gives the service its keyring: from files, or from Redis, where the first instance puts keys it has made.
// While Redis cannot be reached the service answers 503 and loadKeys waits; a key that cannot be used ends the start.
func (c *serve) loadKeys(ctx context.Context, log *slog.Logger, store *redisstore.Store, service *server.Server) error {
	for waiting := false; ; waiting = true {
		keyring, err := c.keyring(ctx, store)
		if err == nil {
			service.SetKeyring(keyring)
			if len(c.SigningKey) == 0 || len(c.TokenKey) == 0 {
				log.Warn("keys: made by the service and kept in Redis, which suits one trust domain only: whoever " +
					"reads that Redis can sign tokens. Give --signing-key and --token-key to keep them apart.")
			}
			return nil
		}
		if !errors.Is(err, redisstore.ErrUnavailable) {
			return err
		}
		if !waiting {
			log.Warn("waiting for Redis", "cause", err)
		}
		select {
		case <-ctx.Done():
			return errors.New("told to stop before Redis could be reached")
		case <-time.After(keyRetry):
		}
	}
}

func (c *serve) keyring(ctx context.Context, store *redisstore.Store) (*token.Keyring, error) {
	signing, err := readKeys(c.SigningKey, token.ParseSigningKey)
	if err != nil {
		return nil, err
	}
	refresh, err := readKeys(c.TokenKey, token.ParseRefreshKey)
	if err != nil {
		return nil, err
	}
	if len(signing) == 0 {
		fresh, err := token.GenerateSigningKey()
		if err != nil {
			return nil, err
		}
		if signing, err = keptKey(ctx, store, redisstore.SigningKey, fresh, token.ParseSigningKey); err != nil {
			return nil, err
		}
	}
	if len(refresh) == 0 {
		if refresh, err = keptKey(ctx, store, redisstore.RefreshKey, token.GenerateRefreshKey(), token.ParseRefreshKey); err != nil {
			return nil, err
		}
	}
	return token.NewKeyring(c.Issuer, signing, refresh)
}

func readKeys[K any](files []string, parse func([]byte) (K, error)) ([]K, error) {
	var keys []K
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a key: %w", err)
		}
		key, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func keptKey[K any](ctx context.Context, store *redisstore.Store, kind redisstore.KeyKind, fresh []byte,
	parse func([]byte) (K, error)) ([]K, error) {
	text, err := store.KeepKey(ctx, kind, fresh)
	if err != nil {
		return nil, err
	}
	key, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("the %s key in Redis: %w", kind, err)
	}
	return []K{key}, nil
}
