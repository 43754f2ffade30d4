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

const (
	// keyRetry is how long the start waits before it asks Redis for its keys again.
	keyRetry = 250 * time.Millisecond
	// keyPoll is how often a running instance reads the keys kept in Redis. A rotated key is published for at least
	// twice as long before it signs, so every instance knows it by then.
	keyPoll = 2 * time.Second
)

// keyFlags say where the keys are.
type keyFlags struct {
	SigningKey       []string `help:"PKCS#8 PEM file of a key for access tokens; repeatable: the first signs, all verify." type:"existingfile"`
	TokenKey         []string `help:"File with the base64 of 32 random bytes for refresh tokens; repeatable: the first derives, all verify." type:"existingfile"`
	KeyEncryptionKey string   `help:"File with the base64 of 32 random bytes; the keys that are kept in Redis are encrypted with it." type:"existingfile"`
}

// keySource makes keyrings: of the keys in files, or else of those kept in Redis, where the first instance puts keys
// that it has made.
type keySource struct {
	keyFlags
	store    *redisstore.Store
	log      *slog.Logger
	settings *operatorSettings // read before the keys: no token is accepted before it is known who is suspended
	issuer   string            // "" until the first keyring, if none was given
	ownURL   string            // the issuer, if nobody knows a better one
	ownRedis bool              // no other instance has set an issuer there

	fromFiles *fileKeys // read once, at the start
}

// fileKeys are the keys that are kept in files.
type fileKeys struct {
	signing    []*token.SigningKey
	refresh    []*token.RefreshKey
	encryption *token.KeyEncryptionKey
}

// fromRedis says whether some of the keys are kept in Redis, and so may change while the service runs.
func (k *keySource) fromRedis() bool { return len(k.SigningKey) == 0 || len(k.TokenKey) == 0 }

func warnOfSharedKeys(log *slog.Logger, encrypted bool) {
	if encrypted {
		log.Info("keys: kept in Redis, encrypted")
		return
	}
	log.Warn("keys: made by the service and kept in Redis, which suits one trust domain only: whoever reads that " +
		"Redis can sign tokens. Give --signing-key and --token-key, or --key-encryption-key, to keep them apart.")
}

// load gives the service its first keyring. While Redis cannot be reached the service answers 503 and load waits; a
// key that cannot be used ends the start.
func (k *keySource) load(ctx context.Context, service *server.Server) (err error) {
	if k.fromFiles, err = k.readFiles(); err != nil {
		return err
	}
	for waiting := false; ; waiting = true {
		keyring, err := k.first(ctx)
		if err == nil {
			service.SetKeyring(keyring)
			return nil
		}
		if !errors.Is(err, redisstore.ErrUnavailable) && !errors.Is(err, redisstore.ErrOutcomeUnknown) {
			return err
		}
		if !waiting {
			k.log.Warn("waiting for Redis", "cause", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("Redis could not be reached: %w", context.Cause(ctx))
		case <-time.After(keyRetry):
		}
	}
}

func (k *keySource) first(ctx context.Context) (*token.Keyring, error) {
	if err := k.settings.read(ctx); err != nil {
		return nil, err
	}
	return k.keyring(ctx)
}

// follow keeps the service's keyring as Redis has it, until ctx ends.
func (k *keySource) follow(ctx context.Context, service *server.Server) {
	service.FollowKeys(k.keyring)
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(keyPoll):
		}
		err := service.ReadKeys(ctx)
		switch {
		case err == nil:
		case ctx.Err() == nil && !failing:
			k.log.Warn("keys could not be read; those of before stay in use", "cause", err)
		}
		failing = err != nil
	}
}

func (k *keySource) keyring(ctx context.Context) (*token.Keyring, error) {
	if err := k.settleIssuer(ctx); err != nil {
		return nil, err
	}
	var err error
	signing, refresh := k.fromFiles.signing, k.fromFiles.refresh
	if len(signing) == 0 {
		signing, err = keptKeys(ctx, k, redisstore.SigningKeys, newSigningKey(token.Ed25519), token.ParseSigningKey)
	}
	if err == nil && len(refresh) == 0 {
		refresh, err = keptKeys(ctx, k, redisstore.RefreshKeys, newRefreshKey, token.ParseRefreshKey)
	}
	if err != nil {
		return nil, err
	}
	return token.NewKeyring(k.issuer, signing, refresh)
}

func (k keyFlags) readFiles() (*fileKeys, error) {
	signing, err := readKeys(k.SigningKey, token.ParseSigningKey)
	if err != nil {
		return nil, err
	}
	refresh, err := readKeys(k.TokenKey, token.ParseRefreshKey)
	if err != nil {
		return nil, err
	}
	encryption, err := k.encryptionKey()
	return &fileKeys{signing, refresh, encryption}, err
}

// encryptionKey returns nil when none is given.
func (k keyFlags) encryptionKey() (*token.KeyEncryptionKey, error) {
	if k.KeyEncryptionKey == "" {
		return nil, nil
	}
	keys, err := readKeys([]string{k.KeyEncryptionKey}, token.ParseKeyEncryptionKey)
	if err != nil {
		return nil, err
	}
	return keys[0], nil
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
