package server

import (
	"context"
	"errors"

	"remit/internal/token"
)

// FollowKeys makes the server read its keys with this function at each ReadKeys, and when a credential names an unknown
// key.
func (s *Server) FollowKeys(read func(context.Context) (*token.Keyring, error)) {
	s.keyReads.mu.Lock()
	defer s.keyReads.mu.Unlock()
	s.keyReads.read = read
}

// ReadKeys reads the keys with the function of FollowKeys, or joins a read in progress.
func (s *Server) ReadKeys(ctx context.Context) error {
	return s.keyReads.join(ctx, s.SetKeyring)
}

// refreshKeys returns nil once the keys are fresh enough to conclude that a key does not exist, else errStaleKeys.
func (s *Server) refreshKeys() error {
	r := &s.keyReads
	r.mu.Lock()
	follows, due := r.read != nil, r.ended != nil || age(r.began) >= keyReadPause
	r.mu.Unlock()
	if !follows {
		return nil
	}
	if due {
		_ = s.ReadKeys(context.Background()) // bounded by keyReadTime
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if age(r.good) > keysFresh {
		return errStaleKeys
	}
	return nil
}

// withFreshKeys checks a credential, and checks it again with newly read keys when it names an unknown key.
func withFreshKeys[T any](s *Server, check func(*tokenCache) (T, error)) (T, error) {
	var none T
	v := s.tokens.Load()
	if v == nil {
		return none, errNoKeyring
	}
	checked, err := check(v)
	if !errors.Is(err, token.ErrUnknownKey) {
		return checked, err
	}
	if err := s.refreshKeys(); err != nil {
		return none, err
	}
	if now := s.tokens.Load(); now != v {
		return check(now)
	}
	return none, err
}

// parseRefresh is token.Keyring.ParseRefresh with the current keys. Errors: errNoKeyring, errStaleKeys, and those of
// package token for an invalid refresh token.
func (s *Server) parseRefresh(text string) (token.RefreshToken, error) {
	return withFreshKeys(s, func(v *tokenCache) (token.RefreshToken, error) { return v.keys.ParseRefresh(text) })
}

// verifyAccess is token.Keyring.VerifyAccess with the current keys, without the token cache.
func (s *Server) verifyAccess(text string) (token.Access, error) {
	return withFreshKeys(s, func(v *tokenCache) (token.Access, error) { return v.keys.VerifyAccess(text, s.clock()) })
}

// keysUnavailable distinguishes missing keys from an invalid credential.
func keysUnavailable(err error) bool {
	return errors.Is(err, errStaleKeys) || errors.Is(err, errNoKeyring)
}

// SetKeyring sets the keys. Equal keys keep the token cache.
func (s *Server) SetKeyring(k *token.Keyring) {
	if v := s.tokens.Load(); v == nil || !v.keys.Equal(k) {
		s.tokens.Store(newTokenCache(k, s.store, s.metrics))
	}
}

// keys returns the keyring, or errNoKeyring before there is one.
func (s *Server) keys() (*token.Keyring, error) {
	if v := s.tokens.Load(); v != nil {
		return v.keys, nil
	}
	return nil, errNoKeyring
}
