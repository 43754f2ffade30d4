package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Organization is a tenant.
type Organization struct {
	ID       uuid.UUID
	Name     string
	Metadata string // JSON object, "" for none
	Created  time.Time
}

var (
	createOrganization       = newScript("create_organization", writes)
	authenticateOrganization = newScript("authenticate_organization", reads)
	rotateAPIKey             = newScript("rotate_api_key", writes)
	noteKeyUsed              = newScript("note_key_used", tidies)
)

// CreateOrganization creates the organization that the key names, and returns it with its creation time.
func (s *Store) CreateOrganization(ctx context.Context, key APIKey, name, metadata string) (Organization, error) {
	r, err := s.run(ctx, flow{}, createOrganization, []string{s.keys.organization(key.Organization)}, name, metadata, key.Hash)
	if err != nil {
		return Organization{}, err
	}
	o := Organization{ID: key.Organization, Name: name, Metadata: metadata, Created: r.time(0)}
	return o, r.err
}

// Organization returns the organization that the key opens, or ErrInvalidAPIKey.
func (s *Store) Organization(ctx context.Context, key APIKey) (Organization, error) {
	return s.authenticate(ctx, s.proven.flow(key), key)
}

func (s *Store) authenticate(ctx context.Context, f flow, key APIKey) (Organization, error) {
	r, err := s.runByKey(ctx, key, f, authenticateOrganization, []string{s.keys.organization(key.Organization)}, key.Hash)
	if err != nil {
		return Organization{}, err
	}
	o := Organization{ID: key.Organization, Name: r.text(0), Metadata: r.text(1), Created: r.time(2)}
	return o, r.err
}

// RotateAPIKey makes newHash the organization's key and returns when the key that asks ends: after grace, at the
// server's millisecond. A key in its grace time rotates only while the key after it is unused. Errors: ErrInvalidAPIKey,
// ErrSuccessorUsed.
func (s *Store) RotateAPIKey(ctx context.Context, key APIKey, newHash [32]byte, grace time.Duration) (time.Time, error) {
	r, err := s.runByKey(ctx, key, s.proven.urgent(key), rotateAPIKey, []string{s.keys.organization(key.Organization)},
		key.Hash, newHash, grace.Milliseconds())
	if err != nil {
		return time.Time{}, err
	}
	s.proven.rotated(key, newHash, grace == 0)
	return r.time(0), r.err
}
