package redisstore

import (
	"context"
)

// KeyKind is what a key is for.
type KeyKind string

// The keys that the service makes for itself when it is given none.
const (
	SigningKey KeyKind = "signing" // of access tokens
	RefreshKey KeyKind = "refresh" // of refresh tokens
)

// KeepKey keeps fresh as the key of its kind unless there is one already, and returns the one that is kept, so that
// all instances on one Redis share it. Asking again is harmless.
func (s *Store) KeepKey(ctx context.Context, kind KeyKind, fresh []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	key := s.keys.keyMaterial(kind)
	if err := s.client.SetNX(ctx, key, fresh, 0).Err(); err != nil {
		return nil, classify(err, reads)
	}
	kept, err := s.client.Get(ctx, key).Bytes()
	return kept, classify(err, reads)
}
