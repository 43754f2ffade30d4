package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"remit/internal/token"
	"remit/redisstore"
)

// storage is where keys are stored, and with what they are encrypted.
type storage struct {
	store      *redisstore.Store
	encryption *token.KeyEncryptionKey // nil stores keys unencrypted
	log        *slog.Logger
}

// storedKeys returns the keys that Redis stores, first the one that signs now. When there is none it stores a new one. It
// leaves out and logs a record that cannot be used, so that the others can still be used, rotated and retired.
func storedKeys[K any](ctx context.Context, s storage, kind redisstore.KeyKind,
	generate func() (newKey, error), parse func([]byte) (K, error)) ([]K, error) {
	records, now, err := s.store.Keys(ctx, kind)
	if err == nil && len(records) == 0 {
		records, now, err = storeFirstKey(ctx, s, kind, generate)
	}
	if err != nil {
		return nil, err
	}
	var keys []K
	var unusable error
	for _, record := range signerFirst(records, now) {
		key, err := openStored(s.encryption, sealName(kind, record.ID), record.Material, parse)
		if err != nil {
			unusable = errors.Join(unusable, err)
			continue
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, cmp.Or(unusable, fmt.Errorf("%w: Redis stores no usable %s key", token.ErrKey, kind))
	}
	if unusable != nil {
		s.log.Error("a stored key cannot be used", "cause", unusable)
	}
	return keys, nil
}

func openStored[K any](kek *token.KeyEncryptionKey, name, sealed string, parse func([]byte) (K, error)) (K, error) {
	var none K
	material, err := kek.Open(name, sealed)
	if err != nil {
		return none, err
	}
	key, err := parse(material)
	if err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// storeFirstKey stores a new key unless another instance was faster, and returns what Redis stores now.
func storeFirstKey(ctx context.Context, s storage, kind redisstore.KeyKind,
	generate func() (newKey, error)) ([]redisstore.KeyRecord, time.Time, error) {
	key, err := generate()
	if err != nil {
		return nil, time.Time{}, err
	}
	if err := s.store.KeepFirstKey(ctx, kind, key.id, key.sealed(s.encryption, kind)); err != nil {
		return nil, time.Time{}, err
	}
	return s.store.Keys(ctx, kind)
}

// signerFirst moves the newest key that may sign to the front. It expects the newest record first.
func signerFirst(records []redisstore.KeyRecord, now time.Time) []redisstore.KeyRecord {
	for i, record := range records {
		if !record.SignsFrom.After(now) {
			ordered := append([]redisstore.KeyRecord{record}, records[:i]...)
			return append(ordered, records[i+1:]...)
		}
	}
	return records
}
