package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
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
	issuer   string // "" until the first keyring, if none was given
	ownURL   string // the issuer, if nobody knows a better one
	ownRedis bool   // no other instance has set an issuer there
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
func (k *keySource) load(ctx context.Context, log *slog.Logger, service *server.Server) error {
	for waiting := false; ; waiting = true {
		keyring, err := k.keyring(ctx)
		if err == nil {
			service.SetKeyring(keyring)
			return nil
		}
		if !errors.Is(err, redisstore.ErrUnavailable) && !errors.Is(err, redisstore.ErrOutcomeUnknown) {
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

// follow keeps the service's keyring as Redis has it, until ctx ends.
func (k *keySource) follow(ctx context.Context, log *slog.Logger, service *server.Server) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(keyPoll):
		}
		keyring, err := k.keyring(ctx)
		if err != nil {
			log.Warn("keys could not be read; those of before stay in use", "cause", err)
			continue
		}
		service.SetKeyring(keyring)
	}
}

func (k *keySource) keyring(ctx context.Context) (*token.Keyring, error) {
	if err := k.settleIssuer(ctx); err != nil {
		return nil, err
	}
	kek, err := k.encryptionKey()
	if err != nil {
		return nil, err
	}
	signing, err := readKeys(k.SigningKey, token.ParseSigningKey)
	if err == nil && len(signing) == 0 {
		signing, err = keptKeys(ctx, k.store, kek, redisstore.SigningKeys, newSigningKey(token.Ed25519), token.ParseSigningKey)
	}
	if err != nil {
		return nil, err
	}
	refresh, err := readKeys(k.TokenKey, token.ParseRefreshKey)
	if err == nil && len(refresh) == 0 {
		refresh, err = keptKeys(ctx, k.store, kek, redisstore.RefreshKeys, newRefreshKey, token.ParseRefreshKey)
	}
	if err != nil {
		return nil, err
	}
	return token.NewKeyring(k.issuer, signing, refresh)
}

// settleIssuer finds the issuer that all instances on this Redis share. The first of them that was not told one sets it.
func (k *keySource) settleIssuer(ctx context.Context) (err error) {
	switch {
	case k.issuer != "":
		return nil
	case k.ownRedis:
		if err = k.store.SetIssuer(ctx, k.ownURL); err == nil {
			k.issuer = k.ownURL
		}
	default:
		k.issuer, err = k.store.KeepIssuer(ctx, k.ownURL)
	}
	return err
}

// isIssuer says whether a URL can be an issuer that clients discover the service by (RFC 8414 §2): its metadata lies at
// a path of its own, so it has none.
func isIssuer(text string) bool {
	issuer, err := url.Parse(text)
	return err == nil && (issuer.Scheme == "https" || issuer.Scheme == "http") && issuer.Host != "" &&
		text == issuer.Scheme+"://"+issuer.Host
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

// freshKey is a key just made: its name, and what is to be kept of it.
type freshKey struct {
	id       string
	material []byte
}

func newSigningKey(algorithm token.Algorithm) func() (freshKey, error) {
	return func() (freshKey, error) {
		material, err := token.GenerateSigningKey(algorithm)
		if err != nil {
			return freshKey{}, err
		}
		key, err := token.ParseSigningKey(material)
		return freshKey{key.String(), material}, err
	}
}

func newRefreshKey() (freshKey, error) {
	material := token.GenerateRefreshKey()
	key, err := token.ParseRefreshKey(material)
	return freshKey{key.String(), material}, err
}

// keptKeys returns the keys that Redis keeps, the one that signs now first. When there are none it makes the first.
func keptKeys[K any](ctx context.Context, store *redisstore.Store, kek *token.KeyEncryptionKey, kind redisstore.KeyKind,
	fresh func() (freshKey, error), parse func([]byte) (K, error)) ([]K, error) {
	records, now, err := store.Keys(ctx, kind)
	if err == nil && len(records) == 0 {
		records, now, err = keepFirstKey(ctx, store, kek, kind, fresh)
	}
	if err != nil {
		return nil, err
	}
	var keys []K
	for _, record := range signerFirst(records, now) {
		material, err := kek.Open(keptName(kind, record.ID), record.Material)
		if err != nil {
			return nil, err
		}
		key, err := parse(material)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keptName(kind, record.ID), err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func keepFirstKey(ctx context.Context, store *redisstore.Store, kek *token.KeyEncryptionKey, kind redisstore.KeyKind,
	fresh func() (freshKey, error)) ([]redisstore.KeyRecord, time.Time, error) {
	key, err := fresh()
	if err != nil {
		return nil, time.Time{}, err
	}
	if err := store.KeepFirstKey(ctx, kind, key.id, kek.Seal(keptName(kind, key.id), key.material)); err != nil {
		return nil, time.Time{}, err
	}
	return store.Keys(ctx, kind)
}

// signerFirst puts the newest key that may sign before the others; records are the newest first.
func signerFirst(records []redisstore.KeyRecord, now time.Time) []redisstore.KeyRecord {
	for i, record := range records {
		if !record.SignsFrom.After(now) {
			ordered := append([]redisstore.KeyRecord{record}, records[:i]...)
			return append(ordered, records[i+1:]...)
		}
	}
	return records
}

// keptName is what a kept key is bound to when it is encrypted, and how errors call it.
func keptName(kind redisstore.KeyKind, id string) string { return string(kind) + " key " + id }
