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

var createOrganization = newSealedScript("identity/create_organization")

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
		[]string{s.keys.organization(key.Organization)}, name, metadata, key.stored())
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

// Organization returns the key's organization. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended.
func (s *Store) Organization(ctx context.Context, key APIKey) (Organization, error) {
	return s.authenticate(ctx, s.proven.flow(key), key)
}

// OrganizationUsage returns an organization's usage and its quotas by name. Both are counts, but bytes for "bytes"; a quota
// of 0 is unbounded. Changes by other instances in the last second may be missing. Errors: ErrUnknownOrganization.
func (s *Store) OrganizationUsage(ctx context.Context, organization uuid.UUID) (usage, quotas map[string]int64, err error) {
	a := s.usage.account(organization)
	if err := s.syncUsage(ctx, a); err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used().byName(), a.quotas.byName(), nil
}
