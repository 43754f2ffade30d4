package redisstore

import (
	"context"

	"github.com/google/uuid"
)

// CheckKey returns why an API key is refused for an operation, nil if it is not. It is no use of the key, so it writes nothing.
// Errors: those of OwnKey.
func (s *Store) CheckKey(ctx context.Context, key APIKey) error {
	f := s.core.Proven.Flow(key)
	if err := s.core.RefuseSuspended(ctx, key, f); err != nil {
		return err
	}
	_, err := s.client.Run(ctx, f, identifyAPIKey, []string{s.keys.Organization(key.Organization)}, key.Credential())
	s.core.Proven.Note(key, err)
	return err
}

// HasVerified says whether this store has found the API key valid. It may have been rotated since.
func (s *Store) HasVerified(key APIKey) bool { return s.core.HasVerified(key) }

// Suspended says whether the organization was suspended at the last ReadSuspensions.
func (s *Store) Suspended(organization uuid.UUID) bool { return s.core.Suspended(organization) }

// ReadSuspensions reads which organizations are suspended, if that has changed since the last read. From then on the store
// refuses them with ErrOrganizationSuspended. Errors: ErrUnavailable.
func (s *Store) ReadSuspensions(ctx context.Context) error { return s.core.ReadSuspensions(ctx) }
