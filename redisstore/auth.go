package redisstore

import (
	"context"
	"fmt"
	"time"
)

var (
	authenticateOrganization = newMergedScript("kernel/authenticate_organization", reads)
	noteKeyUsed              = newScript("kernel/note_key_used", bestEffort)
)

func (s *Store) authenticate(ctx context.Context, f flow, key APIKey) (Organization, error) {
	r, err := s.runByKey(ctx, key, f, authenticateOrganization, []string{s.keys.organization(key.Organization)}, key.credential())
	if err != nil {
		return Organization{}, err
	}
	o := Organization{ID: key.Organization, Name: r.Text(0), Metadata: r.Text(1), Created: r.Time(2)}
	return o, r.Err
}

// runByKey runs a script that checks an API key.
func (s *Store) runByKey(ctx context.Context, key APIKey, f flow, sc *script, keys []string, args ...any) (*reply, error) {
	if err := s.refuseSuspended(ctx, key, f); err != nil {
		return nil, err
	}
	r, err := s.client.Run(ctx, f, sc, keys, args...)
	s.proven.note(key, err)
	if err == nil {
		s.usedNow(ctx, key)
	}
	return r, err
}

// usedNow notes the use of a valid key if that is due.
func (s *Store) usedNow(ctx context.Context, key APIKey) {
	if s.proven.mayNoteUse(key, time.Now()) {
		s.noteUse(ctx, key)
	}
}

// noteUse notes in Redis that a valid key is in use, before the response. Each instance does it at the key's first use, and
// then once a minute; if the first fails, the next use tries again.
func (s *Store) noteUse(ctx context.Context, key APIKey) {
	keys := []string{s.keys.organization(key.Organization)}
	if _, err := s.client.Run(ctx, s.proven.flow(key), noteKeyUsed, keys, key.Hash[:]); err == nil {
		s.proven.noted(key, time.Now())
	}
}

// HasVerified says whether this store has found the API key valid. It may have been rotated since.
func (s *Store) HasVerified(key APIKey) bool {
	known, _ := s.proven.verified.Peek(key.Organization)
	return known.has(key)
}

// refuseSuspended refuses a valid API key of a suspended organization. It checks the key first: a stranger must not learn
// with a forged key that an organization is suspended.
func (s *Store) refuseSuspended(ctx context.Context, key APIKey, f flow) error {
	if s.config.FollowsSuspensions && s.suspended.Load() == nil {
		return fmt.Errorf("%w: the suspended organizations are not known yet", ErrUnavailable)
	}
	if !s.Suspended(key.Organization) {
		return nil
	}
	_, err := s.client.Run(ctx, f, authenticateOrganization, []string{s.keys.organization(key.Organization)}, key.credential())
	if s.proven.note(key, err); err != nil {
		return err
	}
	return ErrOrganizationSuspended
}

// CheckKey returns why an API key is refused for an operation, nil if it is not. It is no use of the key, so it writes nothing.
// Errors: those of OwnKey.
func (s *Store) CheckKey(ctx context.Context, key APIKey) error {
	f := s.proven.flow(key)
	if err := s.refuseSuspended(ctx, key, f); err != nil {
		return err
	}
	_, err := s.client.Run(ctx, f, identifyAPIKey, []string{s.keys.organization(key.Organization)}, key.credential())
	s.proven.note(key, err)
	return err
}
