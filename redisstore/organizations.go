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
	createOrganization       = newSealedScript("create_organization")
	authenticateOrganization = newScript("authenticate_organization", reads)
	rotateAPIKey             = newSealedScript("rotate_api_key")
	noteKeyUsed              = newScript("note_key_used", tidies)
)

// CreateOrganization creates the organization that the key names, and returns it with its creation time.
func (s *Store) CreateOrganization(ctx context.Context, key APIKey, name, metadata string) (Organization, error) {
	r, err := s.client.Run(ctx, flow{}, createOrganization.script, []string{s.keys.organization(key.Organization)}, name, metadata, key.Hash)
	if err != nil {
		return Organization{}, err
	}
	o := Organization{ID: key.Organization, Name: name, Metadata: metadata, Created: r.Time(0)}
	return o, r.Err
}

// NewOrganizationID returns a fresh id of an organization, in the one cell that the creator's idempotency key has. creator
// tells those apart who may choose the same key.
func NewOrganizationID(creator string, once *Idempotency) uuid.UUID { return newID(once.cell(creator)) }

// CreateOrganizationOnce is CreateOrganization with an idempotency key, for an organization with a NewOrganizationID. Errors:
// ErrKeyReused, ErrSealed.
func (s *Store) CreateOrganizationOnce(ctx context.Context, creator string, key APIKey, name, metadata string,
	once *Idempotency) (Organization, error) {
	place := s.keys.outcome(key.Organization, digest("creator", creator, once.Key))
	r, err := s.performSealed(ctx, createOrganization, flow{}, once, place, key.Organization,
		[]string{s.keys.organization(key.Organization)}, name, metadata, key.Hash)
	if err != nil {
		return Organization{}, err
	}
	o := Organization{Name: name, Metadata: metadata, Created: r.Time(0)}
	if o.ID, err = uuid.Parse(r.Text(1)); err != nil || r.Err != nil {
		return Organization{}, errReply
	}
	if once.Replayed {
		o.Metadata, err = s.firstMetadata(ctx, flow{}, s.keys.organization(o.ID), "metadata", metadata)
	}
	return o, err
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
	o := Organization{ID: key.Organization, Name: r.Text(0), Metadata: r.Text(1), Created: r.Time(2)}
	return o, r.Err
}

// RotateAPIKey makes newHash the organization's key and returns when the key that asks ends: after grace, at the
// server's millisecond. A key in its grace time rotates only while the key after it is unused. Errors: ErrInvalidAPIKey,
// ErrOrganizationSuspended, ErrSuccessorUsed.
func (s *Store) RotateAPIKey(ctx context.Context, key APIKey, newHash [32]byte, grace time.Duration) (time.Time, error) {
	return s.RotateAPIKeyOnce(ctx, key, newHash, grace, nil)
}

// RotateAPIKeyOnce is RotateAPIKey with an idempotency key, nil for none. Its errors are also ErrKeyReused and ErrSealed.
//
// A key that has ended by its own rotation is given its successor again if the idempotency key is unguessable, or an
// organization whose answer was lost would be locked out. That it is the key that asked first is shown by the seal.
func (s *Store) RotateAPIKeyOnce(ctx context.Context, key APIKey, newHash [32]byte, grace time.Duration,
	once *Idempotency) (time.Time, error) {
	f, place := s.proven.urgent(key), ""
	if err := s.refuseSuspended(ctx, key, f); err != nil {
		return time.Time{}, err
	}
	var held reservation
	if once != nil {
		once.bounded = true
		place = s.claimPlace(key.Organization, once)
		var err error
		if held, err = s.reserveClaim(ctx, actor{organization: key.Organization, flow: f}, once, place); isRefusedCreation(err) {
			once = nil // beyond its quota an organization still rotates, and the key is not remembered
		}
	}
	r, err := s.performSealed(ctx, rotateAPIKey, f, once, place, key.Organization,
		[]string{s.keys.organization(key.Organization)}, key.Hash, newHash, grace.Milliseconds())
	held.settle(err, once != nil && once.Replayed)
	switch {
	case err == ErrKeyReused, err == ErrSealed, err == nil && once != nil && once.Replayed && !once.Unguessable():
		if _, invalid := s.authenticate(ctx, f, key); invalid != nil {
			once.Replayed, once.FirstRequest = false, ""
			return time.Time{}, invalid
		}
	default:
		s.proven.note(key, err)
	}
	if err != nil {
		return time.Time{}, err
	}
	if once == nil || !once.Replayed {
		s.proven.rotated(key, newHash, grace == 0)
	}
	return r.Time(0), r.Err
}
