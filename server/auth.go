package server

import (
	"bytes"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// organizationKey returns the API key that the request carries, with the role that the route needs. It refuses a malformed key;
// the store checks in the operation itself that the key is live and has the role.
func organizationKey(ctx *fasthttp.RequestCtx) (redisstore.APIKey, error) {
	given := string(ctx.Request.Header.PeekCanonical(web.CanonicalAPIKey))
	if given == "" {
		return redisstore.APIKey{}, errMissingKey
	}
	organization, err := token.APIKeyOrganization(given)
	if err != nil {
		return redisstore.APIKey{}, notAKey(given)
	}
	web.InfoOf(ctx).Organization = organization
	return redisstore.APIKey{Organization: organization, Hash: token.Hash(given), Needs: web.InfoOf(ctx).Role}, nil
}

// notAKey refuses what is no API key.
func notAKey(given string) error {
	if token.LooksLikeJWT(given) {
		return errTokenAsKey
	}
	return errInvalidKey
}

// keyFirst returns why the API key of a malformed request is refused, and err if it is not. An operation's script checks the key, and
// a malformed request reaches none. When the store cannot say, err stands.
func (g *guard) keyFirst(ctx *fasthttp.RequestCtx, err error) error {
	if web.InfoOf(ctx).Role == web.NoKey || !errors.As(err, new(*web.InvalidRequest)) && !errors.Is(err, web.ErrMediaType) {
		return err
	}
	if _, hasToken := accessToken(ctx); hasToken { // an agent, or an ambiguous request
		return err
	}
	key, refusal := organizationKey(ctx)
	if refusal == nil {
		refusal = g.store.CheckKey(web.RequestContext(ctx), key)
	}
	if refusal == nil || g.front.Hooks.ProblemOf(refusal).Status >= fasthttp.StatusInternalServerError {
		return err
	}
	return refusal
}

// newKey is a new API key as the store keeps it.
func newKey(organization uuid.UUID, text string) redisstore.APIKey {
	return redisstore.APIKey{Organization: organization, Hash: token.Hash(text), Hint: token.Hint(text)}
}

// HasVerified reports whether this instance has used an API key successfully, without asking Redis.
func (g *guard) hasVerified(organization uuid.UUID, key string) bool {
	return g.store.HasVerified(redisstore.APIKey{Organization: organization, Hash: token.Hash(key)})
}

// verifiedOrganization returns the organization of a request's credential if this instance knows it to be good without asking Redis:
// an API key that it has used successfully, or an access token whose signature is valid.
func (g *guard) verifiedOrganization(ctx *fasthttp.RequestCtx, now time.Time) (uuid.UUID, bool) {
	if key, err := organizationKey(ctx); err == nil && g.store.HasVerified(key) {
		return key.Organization, true
	}
	if given, found := accessToken(ctx); found {
		if v := g.tokens.Load(); v != nil {
			if access, err := v.verify(given.text, now); err == nil {
				return access.Organization, true
			}
		}
	}
	return uuid.Nil, false
}

// agentToken returns the verified access token that the request carries (RFC 6750 §2.1, RFC 9449 §7.1).
func (g *guard) agentToken(ctx *fasthttp.RequestCtx) (*cachedToken, error) {
	given, found := accessToken(ctx)
	if !found {
		return nil, errMissingToken
	}
	return g.verifiedToken(ctx, given)
}

// verifiedToken is agentToken for a token that is already read. It refuses a token that is for others only (RFC 9068 §4), and uses
// up the proof of one that is bound to a key.
func (g *guard) verifiedToken(ctx *fasthttp.RequestCtx, given presentedToken) (*cachedToken, error) {
	access, err := g.anyToken(ctx, given)
	if err != nil {
		return nil, err
	}
	if !access.forIssuer {
		return nil, errInvalidToken
	}
	access, proof, err := g.admit(ctx, access)
	if err != nil || proof == nil {
		return access, err
	}
	return access, asProofError(401, g.useProof(ctx, access, proof))
}

// admit checks what anyToken leaves: the proof of a token that is bound to a key, which it returns, and where a delegated token
// reaches. It checks the proof first, because that needs no store.
func (g *guard) admit(ctx *fasthttp.RequestCtx, access *cachedToken) (*cachedToken, *redisstore.Proof, error) {
	var proof *redisstore.Proof
	if access.Thumbprint != "" {
		given, err := g.proofOf(ctx, access)
		if err != nil {
			return nil, nil, err
		}
		proof = &given
	}
	if access.caller.delegated == nil {
		return access, proof, nil
	}
	access, err := g.admitDelegated(ctx, access)
	return access, proof, err
}

// anyToken returns the token if this service signed it, for whomever it is, and it comes under the scheme that it needs.
func (g *guard) anyToken(ctx *fasthttp.RequestCtx, given presentedToken) (*cachedToken, error) {
	access, err := withFreshKeys(g, func(v *tokenCache) (*cachedToken, error) { return v.verify(given.text, g.clock()) })
	if keysUnavailable(err) {
		return nil, err
	}
	if err != nil && token.LooksLikeAPIKey(given.text) {
		return nil, errKeyAsToken
	}
	if err != nil {
		return nil, errInvalidToken
	}
	if err := given.checkScheme(access); err != nil {
		return nil, err
	}
	web.IdentifyCaller(ctx, access.Organization, access.Agent)
	if g.store.Suspended(access.Organization) {
		return nil, redisstore.ErrOrganizationSuspended
	}
	return access, nil
}

// eitherCaller returns the organization or the agent that calls. It refuses a request with both credentials, because it is
// ambiguous.
func (g *guard) eitherCaller(ctx *fasthttp.RequestCtx) (caller, error) {
	given, hasToken := accessToken(ctx)
	hasKey := len(ctx.Request.Header.PeekCanonical(web.CanonicalAPIKey)) > 0
	switch {
	case hasKey && hasToken:
		return caller{}, web.Invalid("", "send X-API-Key or Authorization, not both")
	case hasKey:
		return keyCaller(ctx)
	case hasToken:
		access, err := g.verifiedToken(ctx, given)
		if err != nil {
			return caller{}, err
		}
		return access.caller, nil
	}
	return caller{}, errMissingEither
}

// keyCaller is separate from eitherCaller so that only callers with a key pay for its allocation.
func keyCaller(ctx *fasthttp.RequestCtx) (caller, error) {
	key, err := organizationKey(ctx)
	return caller{Caller: redisstore.Caller{Key: &key}}, err
}

// bearer returns the token of an Authorization header with the scheme Bearer, in any case (RFC 9110 §11.1).
func bearer(ctx *fasthttp.RequestCtx) ([]byte, bool) {
	scheme, given, found := bytes.Cut(ctx.Request.Header.PeekCanonical(web.CanonicalAuthorization), []byte(" "))
	return given, found && bytes.EqualFold(scheme, []byte("Bearer"))
}

// callerAndID returns the caller and the id in the path.
func (g *guard) callerAndID(ctx *fasthttp.RequestCtx) (caller, uuid.UUID, error) {
	either, err := g.eitherCaller(ctx)
	if err != nil {
		return caller{}, uuid.Nil, err
	}
	id, err := web.PathID(ctx)
	return either, id, err
}

// keyAndID returns the API key and the id in the path.
func keyAndID(ctx *fasthttp.RequestCtx) (redisstore.APIKey, uuid.UUID, error) {
	key, err := organizationKey(ctx)
	if err != nil {
		return redisstore.APIKey{}, uuid.Nil, err
	}
	id, err := web.PathID(ctx)
	return key, id, err
}

// agentAndID returns the access token of the agent that calls, and the id in the path.
func (g *guard) agentAndID(ctx *fasthttp.RequestCtx) (redisstore.AccessToken, uuid.UUID, error) {
	access, err := g.agentToken(ctx)
	if err != nil {
		return redisstore.AccessToken{}, uuid.Nil, err
	}
	id, err := web.PathID(ctx)
	return *access.caller.Token, id, err
}
