package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

var (
	createAPIKey = kernel.NewSealedScript("identity/create_api_key")
	listAPIKeys  = kernel.NewScript("identity/list_api_keys", reads)
	rotateAPIKey = kernel.NewSealedScript("identity/rotate_api_key")
	deleteAPIKey = kernel.NewScript("identity/delete_api_key", writes)
)

// APIKeyRecord is what an organization can see of one of its API keys.
type APIKeyRecord struct {
	ID       uuid.UUID // of the first key, the organization's
	Name     string    // "" for the first key
	Role     Role
	Hint     string // its last 4 characters
	Created  time.Time
	Expires  time.Time // zero for never
	LastUsed time.Time // at most a minute before its last use; zero for never
}

// NewAPIKey is an API key to create.
type NewAPIKey struct {
	Name     string
	Role     Role
	Lifetime time.Duration // 0 for no end

	Idempotency *Idempotency // nil for no idempotency key
}

// CreateAPIKey creates an API key of the caller's organization with the hash and the hint of fresh. An organization has at most
// 64; at that number, one that has expired makes room. The record has id, creation and expiry. Errors: ErrInvalidAPIKey,
// *RoleError, ErrOrganizationSuspended, ErrSuccessorUsed, *QuotaError, *RateError; with an idempotency key
// ErrIdempotencyKeyReused and ErrSealed.
func (s *Store) CreateAPIKey(ctx context.Context, key, fresh APIKey, n NewAPIKey) (APIKeyRecord, error) {
	f := s.core.Proven.Urgent(key)
	if _, err := s.core.Authenticate(ctx, f, key); err != nil {
		return APIKeyRecord{}, err
	}
	place, held, err := s.core.ReserveSealed(ctx, key, f, n.Idempotency, kernel.APIKeySize+int64(len(n.Name)))
	if err != nil {
		return APIKeyRecord{}, err
	}
	lifetime := ""
	if n.Lifetime > 0 {
		lifetime = strconv.FormatInt(n.Lifetime.Milliseconds(), 10)
	}
	r, err := s.core.PerformSealed(ctx, createAPIKey, f, n.Idempotency, place, key.Organization,
		[]string{s.keys.Organization(key.Organization)}, key.Credential(), NewID(key.Organization), fresh.Stored(), n.Role.Rank(), lifetime, n.Name)
	held.Finish(err, n.Idempotency.IsReplay())
	if err != nil {
		return APIKeyRecord{}, err
	}
	return APIKeyRecord{ID: r.ID(0), Name: n.Name, Role: n.Role, Created: r.Time(1), Expires: r.TimeOrZero(2)}, r.Err
}

// APIKeys returns the API keys of the caller's organization, newest first. Errors: ErrInvalidAPIKey, *RoleError,
// ErrOrganizationSuspended.
func (s *Store) APIKeys(ctx context.Context, key APIKey) ([]APIKeyRecord, error) {
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), listAPIKeys, []string{s.keys.Organization(key.Organization)}, key.Credential())
	if err != nil {
		return nil, err
	}
	listed := r.List(0)
	records := make([]APIKeyRecord, len(listed.Values))
	for i := range records {
		if records[i], err = readAPIKeyRecord(key.Organization, listed.List(i)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(records, func(a, b APIKeyRecord) int {
		return cmp.Or(b.Created.Compare(a.Created), slices.Compare(b.ID[:], a.ID[:]))
	})
	return records, listed.Err
}

func readAPIKeyRecord(organization uuid.UUID, r *reply) (APIKeyRecord, error) {
	k := APIKeyRecord{
		ID: organization, Role: kernel.RoleAt(r, 1), Created: r.Time(2), Expires: r.TimeOrZero(3), Hint: r.Text(4),
		LastUsed: r.TimeOrZero(5), Name: r.Text(6),
	}
	if r.Text(0) != "" {
		k.ID = r.ID(0)
	}
	return k, r.Err
}

// RotateAPIKey gives the calling key the hash and the hint of fresh, and returns when the calling credential ends: after grace,
// to the millisecond by Redis's clock. A credential in its grace time can rotate only while its successor is unused. idem is nil
// for no idempotency key. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended, ErrSuccessorUsed; with an idempotency
// key ErrIdempotencyKeyReused and ErrSealed.
//
// A credential that its own rotation ended gets its successor again if the idempotency key is unguessable. Otherwise a lost
// response would lock the organization out. The seal proves that the caller has the credential that made the first request.
func (s *Store) RotateAPIKey(ctx context.Context, key, fresh APIKey, grace time.Duration, idem *Idempotency) (time.Time, error) {
	previousUntil, err := s.rotateAPIKey(ctx, key, fresh, ownKey, grace, idem)
	if err == nil && !idem.IsReplay() {
		s.core.Proven.Rotated(key, fresh.Hash, grace == 0)
	}
	return previousUntil, err
}

// RotateAPIKeyOf is RotateAPIKey for a key of the caller's organization with this id. The credential in use stays valid for
// grace: the current one, or the one before if the current one is still unused. Errors: also ErrUnknownAPIKey.
func (s *Store) RotateAPIKeyOf(ctx context.Context, key APIKey, id uuid.UUID, fresh APIKey, grace time.Duration, idem *Idempotency) (time.Time, error) {
	return s.rotateAPIKey(ctx, key, fresh, keyID(key.Organization, id), grace, idem)
}

// ownKey stands for the calling key in place of an id.
const ownKey = "-"

// keyID is the id of a key as scripts take it.
func keyID(organization, id uuid.UUID) string {
	if id == organization {
		return ""
	}
	return string(id[:])
}

func (s *Store) rotateAPIKey(ctx context.Context, key, fresh APIKey, id string, grace time.Duration, idem *Idempotency) (time.Time, error) {
	f := s.core.Proven.Urgent(key)
	if err := s.core.RefuseSuspended(ctx, key, f); err != nil {
		return time.Time{}, err
	}
	place, held, err := s.core.ReserveSealed(ctx, key, f, idem, 0)
	if kernel.IsRefusedCreation(err) {
		idem = nil // an organization over its quota may still rotate; its idempotency key is not stored
	}
	r, err := s.core.PerformSealed(ctx, rotateAPIKey, f, idem, place, key.Organization,
		[]string{s.keys.Organization(key.Organization)}, key.Credential(), fresh.Stored(), grace.Milliseconds(), id)
	held.Finish(err, idem.IsReplay())
	switch {
	case err == ErrIdempotencyKeyReused, err == ErrSealed, err == nil && idem.IsReplay() && !(idem.Unguessable() && isOwn(r, id)):
		if _, invalid := s.core.Authenticate(ctx, f, key); invalid != nil {
			idem.Outcome.Replayed, idem.Outcome.FirstRequest = false, ""
			return time.Time{}, invalid
		}
	default:
		s.core.Proven.Note(key, err)
	}
	if err != nil {
		return time.Time{}, err
	}
	if !idem.IsReplay() {
		s.core.UsedNow(ctx, key)
	}
	return r.Time(0), r.Err
}

// isOwn says whether the calling key has rotated itself, as the outcome of that tells.
func isOwn(r *reply, id string) bool { return id == ownKey || r.Text(1) != "" }

// DeleteAPIKey ends an API key of the caller's organization at once. Errors: ErrInvalidAPIKey, *RoleError,
// ErrOrganizationSuspended, ErrSuccessorUsed, ErrUnknownAPIKey, ErrLastAdminKey.
func (s *Store) DeleteAPIKey(ctx context.Context, key APIKey, id uuid.UUID) error {
	_, err := s.core.RunByKey(ctx, key, s.core.Proven.Urgent(key), deleteAPIKey, []string{s.keys.Organization(key.Organization)},
		key.Credential(), keyID(key.Organization, id))
	s.core.NoteFreed(key.Organization, err)
	return err
}
