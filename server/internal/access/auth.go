package access

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

// OrganizationKey returns the API key that the request carries, with the role that the route needs. It refuses a malformed key;
// the store checks in the operation itself that the key is live and has the role.
func OrganizationKey(ctx *fasthttp.RequestCtx) (redisstore.APIKey, error) {
	given := string(ctx.Request.Header.PeekCanonical(web.CanonicalAPIKey))
	if given == "" {
		return redisstore.APIKey{}, ErrMissingKey
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
		return ErrTokenAsKey
	}
	return ErrInvalidKey
}

// KeyFirst returns why the API key of a malformed request is refused, and err if it is not. An operation's script checks the key, and
// a malformed request reaches none. When the store cannot say, err stands.
func (g *Guard) KeyFirst(ctx *fasthttp.RequestCtx, err error) error {
	if web.InfoOf(ctx).Role == web.NoKey || !errors.As(err, new(*web.InvalidRequest)) && !errors.Is(err, web.ErrMediaType) {
		return err
	}
	if _, hasToken := AccessToken(ctx); hasToken { // an agent, or an ambiguous request
		return err
	}
	key, refusal := OrganizationKey(ctx)
	if refusal == nil {
		refusal = g.Store.CheckKey(web.RequestContext(ctx), key)
	}
	if refusal == nil || g.Front.Hooks.ProblemOf(refusal).Status >= fasthttp.StatusInternalServerError {
		return err
	}
	return refusal
}

// NewKey is a new API key as the store keeps it.
func NewKey(organization uuid.UUID, text string) redisstore.APIKey {
	return redisstore.APIKey{Organization: organization, Hash: token.Hash(text), Hint: token.Hint(text)}
}

// HasVerified reports whether this instance has used an API key successfully, without asking Redis.
func (g *Guard) HasVerified(organization uuid.UUID, key string) bool {
	return g.Store.HasVerified(redisstore.APIKey{Organization: organization, Hash: token.Hash(key)})
}

// VerifiedOrganization returns the organization of a request's credential if this instance knows it to be good without asking Redis:
// an API key that it has used successfully, or an access token or session key whose signature is valid.
func (g *Guard) VerifiedOrganization(ctx *fasthttp.RequestCtx, now time.Time) (uuid.UUID, bool) {
	if key, err := OrganizationKey(ctx); err == nil && g.Store.HasVerified(key) {
		return key.Organization, true
	}
	if given, found := AccessToken(ctx); found {
		if v := g.Tokens.Load(); v != nil {
			if access, err := v.Verify(given.Text, now); err == nil {
				return access.Organization, true
			}
		}
	}
	return uuid.Nil, false
}

// AgentToken returns the verified access token that the request carries (RFC 6750 §2.1, RFC 9449 §7.1), or the session key, which stands
// for one.
func (g *Guard) AgentToken(ctx *fasthttp.RequestCtx) (*CachedToken, error) {
	given, found := AccessToken(ctx)
	if !found {
		return nil, ErrMissingToken
	}
	return g.verifiedToken(ctx, given)
}

// IssuedToken returns the access token that the request carries if this service signed it for itself. Whether it is still live, the
// store decides in the operation for which it is presented.
func (g *Guard) IssuedToken(ctx *fasthttp.RequestCtx) (*CachedToken, error) {
	given, found := AccessToken(ctx)
	if !found {
		return nil, ErrMissingToken
	}
	return g.issuedToken(ctx, given)
}

// issuedToken refuses a token that is for others only (RFC 9068 §4).
func (g *Guard) issuedToken(ctx *fasthttp.RequestCtx, given presentedToken) (*CachedToken, error) {
	access, err := g.AnyToken(ctx, given)
	if err == nil && !access.forIssuer {
		return nil, ErrInvalidToken
	}
	return access, err
}

// verifiedToken is AgentToken for a token that is already read. It uses up the proof of one that is bound to a key.
func (g *Guard) verifiedToken(ctx *fasthttp.RequestCtx, given presentedToken) (*CachedToken, error) {
	access, err := g.issuedToken(ctx, given)
	if err != nil {
		return nil, err
	}
	access, proof, err := g.Admit(ctx, access)
	if err != nil || proof == nil {
		return access, err
	}
	return access, AsProofError(401, g.UseProof(ctx, access, proof))
}

// Admit checks what AnyToken leaves: the proof of a token that is bound to a key, which it returns, and where a delegated token
// reaches. It checks the proof first, because that needs no store.
func (g *Guard) Admit(ctx *fasthttp.RequestCtx, access *CachedToken) (*CachedToken, *redisstore.Proof, error) {
	var proof *redisstore.Proof
	if access.Thumbprint != "" {
		given, err := g.proofOf(ctx, access)
		if err != nil {
			return nil, nil, err
		}
		proof = &given
	}
	if access.Caller.Token.IsSessionKey() {
		return access, nil, g.admitSessionKey(ctx, access.Caller)
	}
	if access.Caller.Delegated == nil {
		return access, proof, nil
	}
	access, err := g.admitDelegated(ctx, access)
	return access, proof, err
}

// AnyToken returns the token if this service signed it, for any audience, and it comes under the scheme that it needs.
func (g *Guard) AnyToken(ctx *fasthttp.RequestCtx, given presentedToken) (*CachedToken, error) {
	access, err := WithFreshKeys(g, func(v *TokenCache) (*CachedToken, error) { return v.Verify(given.Text, g.Clock()) })
	if KeysUnavailable(err) {
		return nil, err
	}
	if err != nil && token.LooksLikeAPIKey(given.Text) {
		return nil, ErrKeyAsToken
	}
	if err != nil {
		return nil, ErrInvalidToken
	}
	if err := given.checkScheme(access); err != nil {
		return nil, err
	}
	web.IdentifyCaller(ctx, access.Organization, access.Agent)
	if g.Store.Suspended(access.Organization) {
		return nil, redisstore.ErrOrganizationSuspended
	}
	return access, nil
}

// EitherCaller returns the organization or the agent that calls. It refuses a request with both credentials, because it is
// ambiguous.
func (g *Guard) EitherCaller(ctx *fasthttp.RequestCtx) (Caller, error) {
	given, hasToken := AccessToken(ctx)
	hasKey := len(ctx.Request.Header.PeekCanonical(web.CanonicalAPIKey)) > 0
	switch {
	case hasKey && hasToken:
		return Caller{}, web.Invalid("", "send X-API-Key or Authorization, not both")
	case hasKey:
		return KeyCaller(ctx)
	case hasToken:
		access, err := g.verifiedToken(ctx, given)
		if err != nil {
			return Caller{}, err
		}
		return access.Caller, nil
	}
	return Caller{}, ErrMissingEither
}

// KeyCaller is separate from EitherCaller so that only callers with a key pay for its allocation.
func KeyCaller(ctx *fasthttp.RequestCtx) (Caller, error) {
	key, err := OrganizationKey(ctx)
	return Caller{Caller: redisstore.Caller{Key: &key}}, err
}

// Bearer returns the token of an Authorization header with the scheme Bearer, in any case (RFC 9110 §11.1).
func Bearer(ctx *fasthttp.RequestCtx) ([]byte, bool) {
	scheme, given, found := bytes.Cut(ctx.Request.Header.PeekCanonical(web.CanonicalAuthorization), []byte(" "))
	return given, found && bytes.EqualFold(scheme, []byte("Bearer"))
}
