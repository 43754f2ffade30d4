package pages

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
func (h *Host) Identify(page *fasthttp.RequestCtx, apiKey string, read func(Reply) error) error {
	c := Call{APIKey: apiKey, Method: fasthttp.MethodGet, Path: h.served.Prefix}
	if page == nil {
		return h.callAlone(new(fasthttp.RequestCtx), c, identityBytes, h.identify, read)
	}
	return h.callInside(page, c, h.identify, read)
}

// SignIn is Identify for a key that was just typed: attempts that fail count as failed token exchanges do, for the
// organization that the key names and for the address.
func (h *Host) SignIn(page *fasthttp.RequestCtx, apiKey string, read func(Reply) error) error {
	return h.callInside(page, Call{APIKey: apiKey, Method: fasthttp.MethodPost, Path: h.served.Prefix}, h.signIn, read)
}

// limitedIdentity answers SignIn.
func (h *Host) limitedIdentity(ctx *fasthttp.RequestCtx) error {
	key, err := access.OrganizationKey(ctx)
	if err != nil {
		return h.guard.RejectCredential(ctx, uuid.Nil, redisstore.ErrInvalidCredentials)
	}
	return h.guard.Authenticate(ctx, access.Credential{Agent: key.Organization, Secret: key.Hash}, func() error {
		err := h.keyIdentity(ctx)
		if errors.Is(err, redisstore.ErrInvalidAPIKey) {
			return redisstore.ErrInvalidCredentials
		}
		return err
	})
}

// SealCookie is token.Keyring.SealCookie with the current keys.
func (h *Host) SealCookie(name string, content []byte) (string, error) {
	keys, err := h.guard.Keys()
	if err != nil {
		return "", err
	}
	return keys.SealCookie(name, content), nil
}

// OpenCookie is token.Keyring.OpenCookie with the current keys. When it cannot tell whether the cookie is genuine, its error is
// ErrNoKeys.
func (h *Host) OpenCookie(name, text string) ([]byte, error) {
	content, err := access.WithFreshKeys(h.guard, func(v *access.TokenCache) ([]byte, error) { return v.Keys.OpenCookie(name, text) })
	if access.KeysUnavailable(err) {
		return nil, ErrNoKeys
	}
	return content, err
}

// ErrNoKeys means that the server does not know its keys now.
var ErrNoKeys = errors.New("the keys of the service are not known now")
