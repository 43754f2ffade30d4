package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

var createOrganization = kernel.NewSealedScript("identity/create_organization")

// CreateOrganization creates the organization that the key names, and returns it with its creation time. idem is nil for no
// idempotency key; with one, the organization's id must be a NewOrganizationID of the creator. Errors with one:
// ErrIdempotencyKeyReused, ErrSealed.
func (s *Store) CreateOrganization(ctx context.Context, creator string, key APIKey, name, metadata string,
	idem *Idempotency) (Organization, error) {
	place := ""
	if idem != nil {
		place = s.keys.Outcome(key.Organization, kernel.Digest("creator", creator, idem.Key))
	}
	r, err := s.core.PerformSealed(ctx, createOrganization, flow{}, idem, place, key.Organization,
		[]string{s.keys.Organization(key.Organization)}, name, metadata, key.Stored())
	if err != nil {
		return Organization{}, err
	}
	o := Organization{Name: name, Metadata: metadata, Created: r.Time(0)}
	if o.ID, err = uuid.Parse(r.Text(1)); err != nil || r.Err != nil {
		return Organization{}, errReply
	}
	if idem.IsReplay() {
		o.Metadata, err = s.core.FirstMetadata(ctx, flow{}, s.keys.Organization(o.ID), "metadata", metadata)
	}
	return o, err
}

// NewOrganizationID returns a fresh organization id in the cell of the creator's idempotency key. creator separates callers
// that may choose the same key.
func NewOrganizationID(creator string, idem *Idempotency) uuid.UUID {
	return kernel.IDIn(idem.Cell(creator))
}

// Organization returns the key's organization. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended.
func (s *Store) Organization(ctx context.Context, key APIKey) (Organization, error) {
	return s.core.Authenticate(ctx, s.core.Proven.Flow(key), key)
}

// OrganizationUsage returns an organization's usage and its quotas by name. Both are counts, but bytes for "bytes"; a quota
// of 0 is unbounded. Changes by other instances in the last second may be missing. Errors: ErrUnknownOrganization.
func (s *Store) OrganizationUsage(ctx context.Context, organization uuid.UUID) (usage, quotas map[string]int64, err error) {
	return s.core.OrganizationUsage(ctx, organization)
}

// Quotas returns an organization's quotas by name, 0 for unbounded. Errors: ErrUnknownOrganization.
func (s *Store) Quotas(ctx context.Context, organization uuid.UUID) (map[string]int64, error) {
	_, quotas, err := s.OrganizationUsage(ctx, organization)
	return quotas, err
}

var setQuotas = kernel.NewScript("kernel/set_quotas", writes)

// SetQuotas sets quotas of an organization by name: 0 for unbounded, DefaultQuota for the default. Others stay unchanged.
// Instances apply them within a second of the organization's next request. It is safe to repeat. Errors:
// ErrUnknownOrganization.
func (s *Store) SetQuotas(ctx context.Context, organization uuid.UUID, quotas map[string]int64) error {
	if err := kernel.CheckQuotas(quotas); err != nil {
		return err
	}
	var lines []byte
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		if quotas[name] == kernel.DefaultQuota {
			lines = fmt.Appendf(lines, "%s -\n", name)
		} else {
			lines = fmt.Appendf(lines, "%s %d\n", name, quotas[name])
		}
	}
	keys := []string{s.keys.Organization(organization), s.keys.OrganizationUsage(organization)}
	_, err := s.client.Run(ctx, kernel.OwnFlow, setQuotas, keys, lines)
	return err
}

// BootstrapHash returns the SHA-256 of the stored bootstrap token, and whether there is one. Errors: ErrUnavailable.
func (s *Store) BootstrapHash(ctx context.Context) (hash [32]byte, found bool, err error) {
	kept, err := s.textAt(ctx, s.keys.Bootstrap())
	switch {
	case err != nil || kept == "":
		return hash, false, err
	case len(kept) != len(hash):
		return hash, false, fmt.Errorf("%w: a bootstrap token's hash of %d bytes", errReply, len(kept))
	}
	return [32]byte([]byte(kept)), true, nil
}

// KeepFirstBootstrapHash stores the hash unless one is stored already; BootstrapHash returns the stored one. It is safe to
// repeat. Errors: ErrUnavailable.
func (s *Store) KeepFirstBootstrapHash(ctx context.Context, hash [32]byte) error {
	return s.setText(ctx, s.keys.Bootstrap(), string(hash[:]), "nx")
}

// SetBootstrapHash replaces the stored hash. It is safe to repeat. Errors: ErrUnavailable.
func (s *Store) SetBootstrapHash(ctx context.Context, hash [32]byte) error {
	return s.setText(ctx, s.keys.Bootstrap(), string(hash[:]))
}
