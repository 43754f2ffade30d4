package access

import (
	"context"
	"errors"

	"remit/internal/token"
)

// FollowKeys makes the server read its keys with this function at each ReadKeys, and when a credential names an unknown
// key.
func (g *Guard) FollowKeys(read func(context.Context) (*token.Keyring, error)) {
	g.keyReads.mu.Lock()
	defer g.keyReads.mu.Unlock()
	g.keyReads.read = read
}

// ReadKeys reads the keys with the function of FollowKeys, or joins a read in progress.
func (g *Guard) ReadKeys(ctx context.Context) error {
	return g.keyReads.join(ctx, g.SetKeyring)
}

// refreshKeys returns nil once the keys are fresh enough to conclude that a key does not exist, else ErrStaleKeys.
func (g *Guard) refreshKeys() error {
	r := &g.keyReads
	r.mu.Lock()
	follows, due := r.read != nil, r.ended != nil || age(r.began) >= keyReadPause
	r.mu.Unlock()
	if !follows {
		return nil
	}
	if due {
		_ = g.ReadKeys(context.Background()) // bounded by keyReadTime
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if age(r.good) > keysFresh {
		return ErrStaleKeys
	}
	return nil
}

// WithFreshKeys checks a credential, and checks it again with newly read keys when it names an unknown key.
func WithFreshKeys[T any](g *Guard, check func(*TokenCache) (T, error)) (T, error) {
	var none T
	v := g.Tokens.Load()
	if v == nil {
		return none, ErrNoKeyring
	}
	checked, err := check(v)
	if !errors.Is(err, token.ErrUnknownKey) {
		return checked, err
	}
	if err := g.refreshKeys(); err != nil {
		return none, err
	}
	if now := g.Tokens.Load(); now != v {
		return check(now)
	}
	return none, err
}

// parseRefresh is token.Keyring.ParseRefresh with the current keys. Errors: ErrNoKeyring, ErrStaleKeys, and those of
// package token for an invalid refresh token.
func (g *Guard) parseRefresh(text string) (token.RefreshToken, error) {
	return WithFreshKeys(g, func(v *TokenCache) (token.RefreshToken, error) { return v.Keys.ParseRefresh(text) })
}

// verifyAccess is token.Keyring.VerifyAccess with the current keys, without the token cache.
func (g *Guard) verifyAccess(text string) (token.Access, error) {
	return WithFreshKeys(g, func(v *TokenCache) (token.Access, error) { return v.Keys.VerifyAccess(text, g.Clock()) })
}

// KeysUnavailable distinguishes missing keys from an invalid credential.
func KeysUnavailable(err error) bool {
	return errors.Is(err, ErrStaleKeys) || errors.Is(err, ErrNoKeyring)
}

// refused returns the refusal of a credential that was not verified, or why it could not be.
func refused(err, refusal error) error {
	if err == nil || KeysUnavailable(err) {
		return err
	}
	return refusal
}

// SetKeyring sets the keys. Equal keys keep the token cache.
func (g *Guard) SetKeyring(k *token.Keyring) {
	if v := g.Tokens.Load(); v == nil || !v.Keys.Equal(k) {
		g.Tokens.Store(NewTokenCache(k, g.Store, g.Metrics))
	}
}

// Keys returns the keyring, or ErrNoKeyring before there is one.
func (g *Guard) Keys() (*token.Keyring, error) {
	if v := g.Tokens.Load(); v != nil {
		return v.Keys, nil
	}
	return nil, ErrNoKeyring
}
