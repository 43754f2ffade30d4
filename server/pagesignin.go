package server

import (
	"errors"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// identityBytes is how much memory an Identify reserves for which no client waits. An event makes those of many pages come at once.
const identityBytes = 2 * web.SmallAnswer

// Identify says whose a live API key is. Every page asks it first, so nothing remembers a key or its role.
func (s *Server) Identify(page *fasthttp.RequestCtx, apiKey string, read func(Reply) error) error {
	c := Call{APIKey: apiKey, Method: fasthttp.MethodGet, Path: s.pages.Prefix}
	if page == nil {
		return s.callAlone(new(fasthttp.RequestCtx), c, identityBytes, s.identify, read)
	}
	return s.callInside(page, c, s.identify, read)
}

// SignIn is Identify for a key that somebody has just typed: attempts that fail count as failed token exchanges do, for the
// organization that the key names and for the address.
func (s *Server) SignIn(page *fasthttp.RequestCtx, apiKey string, read func(Reply) error) error {
	return s.callInside(page, Call{APIKey: apiKey, Method: fasthttp.MethodPost, Path: s.pages.Prefix}, s.signIn, read)
}

// limitedIdentity answers SignIn.
func (s *Server) limitedIdentity(ctx *fasthttp.RequestCtx) error {
	key, err := access.OrganizationKey(ctx)
	if err != nil {
		return s.guard.RejectCredential(ctx, uuid.Nil, redisstore.ErrInvalidCredentials)
	}
	return s.guard.Authenticate(ctx, access.Credential{Agent: key.Organization, Secret: key.Hash}, func() error {
		err := s.keyIdentity(ctx)
		if errors.Is(err, redisstore.ErrInvalidAPIKey) {
			return redisstore.ErrInvalidCredentials
		}
		return err
	})
}

// SealCookie is token.Keyring.SealCookie with the current keys.
func (s *Server) SealCookie(name string, content []byte) (string, error) {
	keys, err := s.guard.Keys()
	if err != nil {
		return "", err
	}
	return keys.SealCookie(name, content), nil
}

// OpenCookie is token.Keyring.OpenCookie with the current keys. When it cannot tell whether the cookie is genuine, its error is
// ErrNoKeys.
func (s *Server) OpenCookie(name, text string) ([]byte, error) {
	content, err := access.WithFreshKeys(s.guard, func(v *access.TokenCache) ([]byte, error) { return v.Keys.OpenCookie(name, text) })
	if access.KeysUnavailable(err) {
		return nil, ErrNoKeys
	}
	return content, err
}

// ErrNoKeys means that the server does not know its keys now.
var ErrNoKeys = errors.New("the keys of the service are not known now")
