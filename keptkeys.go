package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"remit/redisstore"
	"remit/token"
)

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

// keptKeys returns the keys that Redis keeps, the one that signs now first. When there are none it makes the first. A
// record that cannot be used is left out, and told: it must not keep the others from being used, rotated or retired.
func keptKeys[K any](ctx context.Context, k *keySource, kind redisstore.KeyKind,
	fresh func() (freshKey, error), parse func([]byte) (K, error)) ([]K, error) {
	records, now, err := k.store.Keys(ctx, kind)
	if err == nil && len(records) == 0 {
		records, now, err = keepFirstKey(ctx, k, kind, fresh)
	}
	if err != nil {
		return nil, err
	}
	var keys []K
	var unusable error
	for _, record := range signerFirst(records, now) {
		key, err := openKept(k.fromFiles.encryption, keptName(kind, record.ID), record.Material, parse)
		if err != nil {
			unusable = errors.Join(unusable, err)
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, cmp.Or(unusable, fmt.Errorf("%w: Redis keeps no usable %s key", token.ErrKey, kind))
	}
	if unusable != nil {
		k.log.Error("a key that Redis keeps cannot be used", "cause", unusable)
	}
	return keys, nil
}

func openKept[K any](kek *token.KeyEncryptionKey, name, kept string, parse func([]byte) (K, error)) (K, error) {
	var none K
	material, err := kek.Open(name, kept)
	if err != nil {
		return none, err
	}
	key, err := parse(material)
	if err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

func keepFirstKey(ctx context.Context, k *keySource, kind redisstore.KeyKind,
	fresh func() (freshKey, error)) ([]redisstore.KeyRecord, time.Time, error) {
	key, err := fresh()
	if err != nil {
		return nil, time.Time{}, err
	}
	material := k.fromFiles.encryption.Seal(keptName(kind, key.id), key.material)
	if err := k.store.KeepFirstKey(ctx, kind, key.id, material); err != nil {
		return nil, time.Time{}, err
	}
	return k.store.Keys(ctx, kind)
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
