package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
)

var (
	createOrganization = newSealedScript("create_organization")
	rotateAPIKey       = newSealedScript("rotate_api_key")
)

// CreateOrganization creates the organization that the key names, and returns it with its creation time. idem is nil for no
// idempotency key; with one, the organization's id must be a NewOrganizationID of the creator. Errors with one:
// ErrIdempotencyKeyReused, ErrSealed.
func (s *Store) CreateOrganization(ctx context.Context, creator string, key APIKey, name, metadata string,
	idem *Idempotency) (Organization, error) {
	place := ""
	if idem != nil {
		place = s.keys.outcome(key.Organization, digest("creator", creator, idem.Key))
	}
	r, err := s.performSealed(ctx, createOrganization, flow{}, idem, place, key.Organization,
		[]string{s.keys.organization(key.Organization)}, name, metadata, key.Hash)
	if err != nil {
		return Organization{}, err
	}
	o := Organization{Name: name, Metadata: metadata, Created: r.Time(0)}
	if o.ID, err = uuid.Parse(r.Text(1)); err != nil || r.Err != nil {
		return Organization{}, errReply
	}
	if idem != nil && idem.Replayed {
		o.Metadata, err = s.firstMetadata(ctx, flow{}, s.keys.organization(o.ID), "metadata", metadata)
	}
	return o, err
}

// NewOrganizationID returns a fresh organization id in the cell of the creator's idempotency key. creator separates callers
// that may choose the same key.
func NewOrganizationID(creator string, idem *Idempotency) uuid.UUID { return newID(idem.cell(creator)) }

// Organization returns the key's organization. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended.
func (s *Store) Organization(ctx context.Context, key APIKey) (Organization, error) {
	return s.authenticate(ctx, s.proven.flow(key), key)
}

// RotateAPIKey makes newHash the hash of the organization's key and returns when the calling key ends: after grace, to the
// millisecond by Redis's clock. A key in its grace time can rotate only while its successor is unused. idem is nil for no
// idempotency key. Errors: ErrInvalidAPIKey, ErrOrganizationSuspended, ErrSuccessorUsed; with an idempotency key
// ErrIdempotencyKeyReused and ErrSealed.
//
// A key that its own rotation ended gets its successor again if the idempotency key is unguessable. Otherwise a lost response
// would lock the organization out. The seal proves that the caller has the key that made the first request.
func (s *Store) RotateAPIKey(ctx context.Context, key APIKey, newHash [32]byte, grace time.Duration,
	idem *Idempotency) (time.Time, error) {
	f, place := s.proven.urgent(key), ""
	if err := s.refuseSuspended(ctx, key, f); err != nil {
		return time.Time{}, err
	}
	var held reservation
	if idem != nil {
		idem.bounded = true
		place = s.claimPlace(key.Organization, idem)
		var err error
		if held, err = s.reserveClaim(ctx, actor{organization: key.Organization, flow: f}, idem, place); isRefusedCreation(err) {
			idem = nil // an organization over its quota may still rotate; its idempotency key is not stored
		}
	}
	r, err := s.performSealed(ctx, rotateAPIKey, f, idem, place, key.Organization,
		[]string{s.keys.organization(key.Organization)}, key.Hash, newHash, grace.Milliseconds())
	held.finish(err, idem != nil && idem.Replayed)
	switch {
	case err == ErrIdempotencyKeyReused, err == ErrSealed, err == nil && idem != nil && idem.Replayed && !idem.Unguessable():
		if _, invalid := s.authenticate(ctx, f, key); invalid != nil {
			idem.Replayed, idem.FirstRequest = false, ""
			return time.Time{}, invalid
		}
	default:
		s.proven.note(key, err)
	}
	if err != nil {
		return time.Time{}, err
	}
	if idem == nil || !idem.Replayed {
		s.proven.rotated(key, newHash, grace == 0)
	}
	return r.Time(0), r.Err
}
