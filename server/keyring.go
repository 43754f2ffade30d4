package server

import (
	"context"
	"errors"
	"time"

	"remit/token"
)

// FollowKeys has the server read its keys so whenever ReadKeys is called, or a credential names a key that it does not know.
func (s *Server) FollowKeys(read func(context.Context) (*token.Keyring, error)) {
	s.keyReads.mu.Lock()
	defer s.keyReads.mu.Unlock()
	s.keyReads.read = read
}

// ReadKeys reads the keys given to FollowKeys now, or waits for a read that is under way.
func (s *Server) ReadKeys(ctx context.Context) error {
	return s.keyReads.join(ctx, s.SetKeyring)
}

// seekKey returns nil once the keys are fresh enough to tell that a key does not exist, else errStaleKeys.
func (s *Server) seekKey() error {
	r := &s.keyReads
	r.mu.Lock()
	follows, due := r.read != nil, r.ended != nil || age(r.began) >= keyReadPause
	r.mu.Unlock()
	if !follows {
		return nil
	}
	if due {
		_ = s.ReadKeys(context.Background()) // whose time is bounded
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if age(r.good) > keysFresh {
		return errStaleKeys
	}
	return nil
}

// withKey checks a credential, and once more with keys just read when it names a key that is not known.
func withKey[T any](s *Server, check func(*verifier) (T, error)) (T, error) {
	var none T
	v := s.verifier.Load()
	if v == nil {
		return none, errNoKeyring
	}
	checked, err := check(v)
	if !errors.Is(err, token.ErrUnknownKey) {
		return checked, err
	}
	if err := s.seekKey(); err != nil {
		return none, err
	}
	if now := s.verifier.Load(); now != v {
		return check(now)
	}
	return none, err
}

// parseRefresh is token.Keyring.ParseRefresh with the keys of now. Errors: errNoKeyring, errStaleKeys, and those of
// the token package for one that is not valid.
func (s *Server) parseRefresh(text string) (token.RefreshToken, error) {
	return withKey(s, func(v *verifier) (token.RefreshToken, error) { return v.keys.ParseRefresh(text) })
}

// verifyAccess is token.Keyring.VerifyAccess with the keys of now.
func (s *Server) verifyAccess(text string) (token.Access, error) {
	return withKey(s, func(v *verifier) (token.Access, error) { return v.keys.VerifyAccess(text, time.Now()) })
}

// cannotSay tells trouble with the keys from a credential that is not valid.
func cannotSay(err error) bool { return errors.Is(err, errStaleKeys) || errors.Is(err, errNoKeyring) }

// SetKeyring gives the server its keys, or new ones. With the same ones nothing is forgotten.
func (s *Server) SetKeyring(k *token.Keyring) {
	if v := s.verifier.Load(); v == nil || !v.keys.Equal(k) {
		s.verifier.Store(newVerifier(k, s.store, s.counts))
	}
}

// keys returns the keyring, or errNoKeyring before there is one.
func (s *Server) keys() (*token.Keyring, error) {
	if v := s.verifier.Load(); v != nil {
		return v.keys, nil
	}
	return nil, errNoKeyring
}
