package kernel

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

var (
	AuthenticateOrganization = NewMergedScript("kernel/authenticate_organization", redisclient.Reads)
	noteKeyUsed              = NewScript("kernel/note_key_used", redisclient.BestEffort)
)

// Authenticate returns the organization of a valid API key. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended.
func (s *Core) Authenticate(ctx context.Context, f redisclient.Flow, key APIKey) (Organization, error) {
	r, err := s.RunByKey(ctx, key, f, AuthenticateOrganization, []string{s.Keys.Organization(key.Organization)}, key.Credential())
	if err != nil {
		return Organization{}, err
	}
	o := Organization{ID: key.Organization, Name: r.Text(0), Metadata: r.Text(1), Created: r.Time(2)}
	return o, r.Err
}

// RunByKey runs a script that checks an API key.
func (s *Core) RunByKey(ctx context.Context, key APIKey, f redisclient.Flow, sc *redisclient.Script, keys []string, args ...any) (*redisclient.Reply, error) {
	if err := s.RefuseSuspended(ctx, key, f); err != nil {
		return nil, err
	}
	r, err := s.Client.Run(ctx, f, sc, keys, args...)
	s.Proven.Note(key, err)
	if err == nil {
		s.UsedNow(ctx, key)
	}
	return r, err
}

// UsedNow notes the use of a valid key if that is due.
func (s *Core) UsedNow(ctx context.Context, key APIKey) {
	if s.Proven.MayNoteUse(key, time.Now()) {
		s.noteUse(ctx, key)
	}
}

// noteUse notes in Redis that a valid key is in use, before the response. Each instance does it at the key's first use, and
// then once a minute; if the first fails, the next use tries again.
func (s *Core) noteUse(ctx context.Context, key APIKey) {
	keys := []string{s.Keys.Organization(key.Organization)}
	if _, err := s.Client.Run(ctx, s.Proven.Flow(key), noteKeyUsed, keys, key.Hash[:]); err == nil {
		s.Proven.Noted(key, time.Now())
	}
}

// HasVerified says whether this store has found the API key valid. It may have been rotated since.
func (s *Core) HasVerified(key APIKey) bool {
	known, _ := s.Proven.verified.Peek(key.Organization)
	return known.has(key)
}

// RefuseSuspended refuses a valid API key of a suspended organization. It checks the key first: a stranger must not learn
// with a forged key that an organization is suspended.
func (s *Core) RefuseSuspended(ctx context.Context, key APIKey, f redisclient.Flow) error {
	if s.config.FollowsSuspensions && s.suspended.Load() == nil {
		return fmt.Errorf("%w: the suspended organizations are not known yet", redisclient.ErrUnavailable)
	}
	if !s.Suspended(key.Organization) {
		return nil
	}
	_, err := s.Client.Run(ctx, f, AuthenticateOrganization, []string{s.Keys.Organization(key.Organization)}, key.Credential())
	if s.Proven.Note(key, err); err != nil {
		return err
	}
	return ErrOrganizationSuspended
}

// Organization is a tenant.
type Organization struct {
	ID       uuid.UUID
	Name     string
	Metadata string // JSON object, "" for none
	Created  time.Time
}
