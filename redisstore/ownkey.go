package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

var identifyAPIKey = kernel.NewScript("kernel/identify_api_key", reads)

// OwnKey is what an API key can learn of itself.
type OwnKey struct {
	Organization string    // its name
	ID           uuid.UUID // of the first key, the organization's
	Role         Role
	Replaced     bool // by a rotation; the key is in its grace time
}

// OwnKey returns which of its organization's API keys this is. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended.
func (s *Store) OwnKey(ctx context.Context, key APIKey) (OwnKey, error) {
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), identifyAPIKey, []string{s.keys.Organization(key.Organization)}, key.Credential())
	if err != nil {
		return OwnKey{}, err
	}
	own := OwnKey{Organization: r.Text(0), ID: key.Organization, Role: kernel.RoleAt(r, 2), Replaced: r.Text(3) != ""}
	if r.Text(1) != "" {
		own.ID = r.ID(1)
	}
	return own, r.Err
}
