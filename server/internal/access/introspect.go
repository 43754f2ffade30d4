package access

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// IntrospectionRoutes registers RFC 7662 for API keys.
func (g *Guard) IntrospectionRoutes(r *web.Routes) {
	r.Post("/v1/auth/introspect", redisstore.Viewer, g.introspect)
}

type introspectRequest struct {
	Token web.Optional[string] `json:"token"`
	Hint  web.Optional[string] `json:"token_type_hint"` // RFC 7662 §2.1; ignored, because tokens identify their type
	// Audience is what the token must be for; absent for any.
	Audience web.Optional[string] `json:"audience"`
}

// Introspection is an RFC 7662 §2.2 body. It contains only active=false for a token that is not live, of a suspended agent
// or session, or of another organization.
type Introspection struct {
	Active       bool           `json:"active"`
	Scope        string         `json:"scope,omitzero"`
	ClientID     uuid.UUID      `json:"client_id,omitzero"`
	TokenType    string         `json:"token_type,omitzero"`
	Expires      int64          `json:"exp,omitzero"` // seconds since 1970, like iat
	Issued       int64          `json:"iat,omitzero"`
	Subject      uuid.UUID      `json:"sub,omitzero"`
	Issuer       string         `json:"iss,omitzero"`
	Agent        uuid.UUID      `json:"agent_id,omitzero"`
	Organization uuid.UUID      `json:"org_id,omitzero"`
	Audience     token.Audience `json:"aud,omitzero"`

	// Of a delegated token (RFC 8693 §4.1).
	Session uuid.UUID       `json:"session_id,omitzero"`
	Actor   *DescribedActor `json:"act,omitzero"`

	Confirmation Confirmation `json:"cnf,omitzero"`
}

// Confirmation is the key that a token is bound to (RFC 9449 §6.2).
type Confirmation struct {
	Thumbprint string `json:"jkt"`
}

// DescribedActor is who acts with a delegated token, with who acts for it in turn.
type DescribedActor struct {
	Subject uuid.UUID       `json:"sub"`
	Actor   *DescribedActor `json:"act,omitzero"`
}

func actorsOf(access token.Access) *DescribedActor {
	var described *DescribedActor
	for _, actor := range slices.Backward(access.Actors) {
		described = &DescribedActor{actor.Agent, described}
	}
	return described
}

func (g *Guard) introspect(ctx *fasthttp.RequestCtx) error {
	key, err := OrganizationKey(ctx)
	if err != nil {
		return err
	}
	var request introspectRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	var v web.Validation
	v.Require(request.Token.Given, "token", "is required")
	v.Require(!request.Audience.Given || request.Audience.Value != "", "audience", "must not be empty")
	if err := v.Err(); err != nil {
		return err
	}
	if _, err := g.Store.Organization(web.RequestContext(ctx), key); err != nil {
		return err
	}
	described, err := g.describeToken(web.ReadContext(ctx), request.Token.Value, request.Audience.Value, key.Organization)
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	return web.Answer(ctx, described)
}

// describeToken describes an access or refresh token of the organization that is for the audience; "" is any.
func (g *Guard) describeToken(ctx context.Context, text, audience string, organization uuid.UUID) (Introspection, error) {
	keys, err := g.Keys()
	if err != nil {
		return Introspection{}, err
	}
	read := g.describeAccess
	if strings.HasPrefix(text, token.RefreshPrefix) {
		read = g.describeRefresh
	}
	described, owner, err := read(ctx, keys, text)
	var suspended *redisstore.AgentSuspendedError
	var session *redisstore.SessionSuspendedError
	var foreign *redisstore.AudienceError
	if errors.Is(err, ErrInvalidToken) || errors.Is(err, redisstore.ErrInvalidToken) || errors.Is(err, redisstore.ErrInvalidRefreshToken) ||
		errors.As(err, &suspended) || errors.As(err, &session) || errors.As(err, &foreign) {
		return Introspection{}, nil
	}
	if err != nil || owner != organization || !described.isFor(audience) {
		return Introspection{}, err
	}
	return described, nil
}

func (g *Guard) describeAccess(ctx context.Context, keys *token.Keyring, text string) (Introspection, uuid.UUID, error) {
	access, err := g.verifyAccess(text)
	if err != nil {
		return Introspection{}, uuid.Nil, refused(err, ErrInvalidToken)
	}
	scopes, err := g.scopesLeft(ctx, access)
	if err != nil {
		return Introspection{}, uuid.Nil, err
	}
	described := describe(keys, access.Agent, access.Organization, scopes, access.Audience)
	described.TokenType = "Bearer"
	if access.Thumbprint != "" {
		described.TokenType, described.Confirmation = "DPoP", Confirmation{access.Thumbprint}
	}
	described.Issued = access.Issued.Unix()
	described.Expires = access.Expires().Unix()
	if access.Delegated() {
		described.ClientID, described.Session, described.Actor = access.Client, access.Session, actorsOf(access)
	}
	return described, access.Organization, nil
}

func (g *Guard) describeRefresh(ctx context.Context, keys *token.Keyring, text string) (Introspection, uuid.UUID, error) {
	refresh, err := g.parseRefresh(text)
	if err != nil {
		return Introspection{}, uuid.Nil, refused(err, ErrInvalidToken)
	}
	grant, expires, err := g.Store.CheckRefresh(ctx, refresh.Agent, refresh.Family, refresh.Generation)
	if err != nil {
		return Introspection{}, uuid.Nil, err
	}
	described := describe(keys, grant.Agent, grant.Organization, grant.Scopes, audienceOf(keys, grant))
	described.TokenType, described.Confirmation = "refresh_token", Confirmation{grant.Thumbprint}
	described.Expires = expires.Unix()
	return described, grant.Organization, nil
}

// isFor reports whether the token is for the audience; "" is any.
func (i Introspection) isFor(audience string) bool {
	return audience == "" || slices.Contains(i.Audience, audience) || isIssuer(audience, i.Issuer) && slices.Contains(i.Audience, i.Issuer)
}

func describe(keys *token.Keyring, agent, organization uuid.UUID, scopes, audience []string) Introspection {
	return Introspection{
		Active: true, Scope: strings.Join(scopes, " "), ClientID: agent, Subject: agent, Issuer: keys.Issuer(),
		Agent: agent, Organization: organization, Audience: audience,
	}
}
