package server

import (
	"context"
	"errors"

	"remit/internal/token"
)

// FollowKeys makes the server read its keys with this function at each ReadKeys, and when a credential names an unknown
// key.
func (g *guard) FollowKeys(read func(context.Context) (*token.Keyring, error)) {
	g.keyReads.mu.Lock()
	defer g.keyReads.mu.Unlock()
	g.keyReads.read = read
}

// ReadKeys reads the keys with the function of FollowKeys, or joins a read in progress.
func (g *guard) ReadKeys(ctx context.Context) error {
	return g.keyReads.join(ctx, g.SetKeyring)
}

// refreshKeys returns nil once the keys are fresh enough to conclude that a key does not exist, else errStaleKeys.
func (g *guard) refreshKeys() error {
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
		return errStaleKeys
	}
	return nil
}

// withFreshKeys checks a credential, and checks it again with newly read keys when it names an unknown key.
func withFreshKeys[T any](g *guard, check func(*tokenCache) (T, error)) (T, error) {
	var none T
	v := g.tokens.Load()
	if v == nil {
		return none, errNoKeyring
	}
	checked, err := check(v)
	if !errors.Is(err, token.ErrUnknownKey) {
		return checked, err
	}
	if err := g.refreshKeys(); err != nil {
		return none, err
	}
	if now := g.tokens.Load(); now != v {
		return check(now)
	}
	return none, err
}

// parseRefresh is token.Keyring.ParseRefresh with the current keys. Errors: errNoKeyring, errStaleKeys, and those of
// package token for an invalid refresh token.
func (g *guard) parseRefresh(text string) (token.RefreshToken, error) {
	return withFreshKeys(g, func(v *tokenCache) (token.RefreshToken, error) { return v.keys.ParseRefresh(text) })
}

// verifyAccess is token.Keyring.VerifyAccess with the current keys, without the token cache.
func (g *guard) verifyAccess(text string) (token.Access, error) {
	return withFreshKeys(g, func(v *tokenCache) (token.Access, error) { return v.keys.VerifyAccess(text, g.clock()) })
}

// keysUnavailable distinguishes missing keys from an invalid credential.
func keysUnavailable(err error) bool {
	return errors.Is(err, errStaleKeys) || errors.Is(err, errNoKeyring)
}

// SetKeyring sets the keys. Equal keys keep the token cache.
func (g *guard) SetKeyring(k *token.Keyring) {
	if v := g.tokens.Load(); v == nil || !v.keys.Equal(k) {
		g.tokens.Store(newTokenCache(k, g.store, g.metrics))
	}
}

// keys returns the keyring, or errNoKeyring before there is one.
func (g *guard) keys() (*token.Keyring, error) {
	if v := g.tokens.Load(); v != nil {
		return v.keys, nil
	}
	return nil, errNoKeyring
}
