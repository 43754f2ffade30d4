package server

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

func (g *guard) tokenRoutes(r *web.Routes) {
	r.Post("/v1/auth/token", web.NoKey, g.exchangeToken)
	r.Post("/v1/auth/refresh", web.NoKey, g.refreshToken)
	r.Post("/v1/auth/revoke", web.NoKey, g.revokeToken)
	r.Get("/.well-known/jwks.json", web.NoKey, g.jwks)
}

type tokenPair struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
}

// pairSize is enough bytes for most pairs.
const pairSize = 1024

// append writes the pair as the encoder would. Tokens need no escaping.
func (p tokenPair) append(o web.Object) web.Object {
	o = o.Plain(`{"access_token":`, p.AccessToken)
	o = o.Plain(`,"refresh_token":`, p.RefreshToken)
	o = o.Plain(`,"token_type":`, p.TokenType)
	o = o.Number(`,"expires_in":`, p.ExpiresIn)
	return append(o, '}')
}

// pairFor returns the token pair of a grant. The same grant always gives the same refresh token.
func pairFor(keys *token.Keyring, grant redisstore.Grant, now time.Time) (tokenPair, error) {
	access, err := signAccess(keys, grant, accessOf(keys, grant, now))
	return tokenPair{
		AccessToken:  access,
		RefreshToken: refreshFor(keys, grant),
		TokenType:    tokenType(grant, "bearer"),
		ExpiresIn:    int64(token.AccessLifetime / time.Second),
	}, err
}

// accessOf returns the access token of a grant.
func accessOf(keys *token.Keyring, grant redisstore.Grant, now time.Time) token.Access {
	return token.Access{
		Agent: grant.Agent, Organization: grant.Organization, Family: grant.Family,
		Scopes: grant.Scopes, Issued: now, Audience: audienceOf(keys, grant), Client: grant.Agent, Thumbprint: grant.Thumbprint,
	}
}

// tokenType returns how an access token is presented: by the scheme DPoP if it is bound to a key (RFC 9449 §5).
func tokenType(grant redisstore.Grant, unbound string) string {
	if grant.Bound {
		return "DPoP"
	}
	return unbound
}

// refreshFor returns the refresh token of a grant, "" for one without.
func refreshFor(keys *token.Keyring, grant redisstore.Grant) string {
	if grant.Generation == 0 {
		return ""
	}
	return keys.FormatRefresh(token.RefreshToken{Agent: grant.Agent, Family: grant.Family, Generation: grant.Generation})
}

type exchangeRequest struct {
	Agent  web.Optional[string] `json:"agent_id"`
	Secret web.Optional[string] `json:"secret"`
	resourceField
}

// decodeFast is decodeFast for the body of a token exchange.
func (r *exchangeRequest) decodeFast(body []byte) bool {
	rest := web.FastReader(body)
	return rest.Object(func(name []byte) bool {
		switch string(name) {
		case "agent_id":
			return rest.TextField(&r.Agent)
		case "secret":
			return rest.TextField(&r.Secret)
		}
		return false
	})
}

// decodeFast is decodeFast for the body of a refresh.
func (r *refreshRequest) decodeFast(body []byte) bool {
	rest := web.FastReader(body)
	return rest.Object(func(name []byte) bool { return string(name) == "refresh_token" && rest.TextField(&r.RefreshToken) })
}

// resourceField says whom the access token is for (RFC 8707); absent for the default.
type resourceField struct {
	Resource web.Optional[token.Audience] `json:"resource"`
}

func (r resourceField) asked(issuer string) (redisstore.GrantRequest, error) {
	var v web.Validation
	v.Require(!r.Resource.Given || len(r.Resource.Value) > 0, "resource", "must not be empty")
	asked := redisstore.GrantRequest{Audience: validAudience(&v, r.Resource.Value, issuer)}
	return asked, v.Err()
}

// decodeExchange is decode for an exchange; see decodeCharge.
func decodeExchange(ctx *fasthttp.RequestCtx) (exchangeRequest, error) {
	var fast exchangeRequest
	if web.IsJSON(&ctx.Request.Header) && fast.decodeFast(ctx.Request.Body()) {
		return fast, nil
	}
	var request exchangeRequest
	err := web.Decode(ctx, &request)
	return request, err
}

// presentedSecret returns the agent id and the hash of the secret. It refuses a malformed secret without asking the store; the
// error then comes with the agent.
func (request exchangeRequest) presentedSecret() (credential, error) {
	var v web.Validation
	agent := v.ID("agent_id", request.Agent)
	v.Require(request.Secret.Given, "secret", "is required")
	if err := v.Err(); err != nil {
		return credential{}, err
	}
	if token.CheckAgentSecret(request.Secret.Value) != nil {
		return credential{agent: agent}, redisstore.ErrInvalidCredentials
	}
	return credential{agent: agent, secret: token.Hash(request.Secret.Value)}, nil
}

// presentedExchange returns the secret in the body, what it is to give, and the keys to sign that.
func (g *guard) presentedExchange(ctx *fasthttp.RequestCtx) (*token.Keyring, credential, redisstore.GrantRequest, error) {
	request, err := decodeExchange(ctx)
	if err != nil {
		return nil, credential{}, redisstore.GrantRequest{}, err
	}
	presented, err := request.presentedSecret()
	if err != nil {
		return nil, presented, redisstore.GrantRequest{}, err
	}
	keys, err := g.keys()
	if err != nil {
		return nil, presented, redisstore.GrantRequest{}, err
	}
	asked, err := request.asked(keys.Issuer())
	return keys, presented, asked, err
}

func (g *guard) exchangeToken(ctx *fasthttp.RequestCtx) error {
	keys, presented, asked, err := g.presentedExchange(ctx)
	if err != nil {
		return g.rejectCredential(ctx, presented.agent, err)
	}
	var grant redisstore.Grant
	err = g.authenticate(ctx, presented, func() (err error) {
		if asked.Proof, err = g.grantProof(ctx); err != nil {
			return err
		}
		grant, err = g.exchangeSecret(ctx, presented, asked)
		return asProofError(400, err)
	})
	if err != nil {
		return err
	}
	web.IdentifyCaller(ctx, grant.Organization, grant.Agent)
	return g.answerPair(ctx, keys, grant)
}

type refreshRequest struct {
	RefreshToken web.Optional[string] `json:"refresh_token"`
	resourceField
}

// decodeRefresh is decode for a refresh; see decodeCharge.
func decodeRefresh(ctx *fasthttp.RequestCtx) (refreshRequest, error) {
	var fast refreshRequest
	if web.IsJSON(&ctx.Request.Header) && fast.decodeFast(ctx.Request.Body()) {
		return fast, nil
	}
	var request refreshRequest
	err := web.Decode(ctx, &request)
	return request, err
}

// issuedRefresh returns the refresh token if this service issued it, with the keys to sign its successor.
func (g *guard) issuedRefresh(given web.Optional[string]) (*token.Keyring, token.RefreshToken, error) {
	if !given.Given {
		return nil, token.RefreshToken{}, web.Invalid("refresh_token", "is required")
	}
	presented, err := g.parseRefresh(given.Value)
	if keysUnavailable(err) {
		return nil, token.RefreshToken{}, err
	}
	if err != nil {
		return nil, token.RefreshToken{}, redisstore.ErrInvalidRefreshToken
	}
	keys, err := g.keys()
	return keys, presented, err
}

// presentedRefresh returns the refresh token in the body, what it is to give, and the keys to sign that.
func (g *guard) presentedRefresh(ctx *fasthttp.RequestCtx) (*token.Keyring, token.RefreshToken, redisstore.GrantRequest, error) {
	request, err := decodeRefresh(ctx)
	if err != nil {
		return nil, token.RefreshToken{}, redisstore.GrantRequest{}, err
	}
	keys, spent, err := g.issuedRefresh(request.RefreshToken)
	if err != nil {
		return nil, token.RefreshToken{}, redisstore.GrantRequest{}, err
	}
	asked, err := request.asked(keys.Issuer())
	return keys, spent, asked, err
}

func (g *guard) refreshToken(ctx *fasthttp.RequestCtx) error {
	keys, spent, asked, err := g.presentedRefresh(ctx)
	if err != nil {
		return g.rejectCredential(ctx, spent.Agent, err)
	}
	var grant redisstore.Grant
	err = g.authenticate(ctx, credential{agent: spent.Agent, refresh: spent}, func() (err error) {
		if asked.Proof, err = g.grantProof(ctx); err != nil {
			return err
		}
		grant, err = g.rotateRefresh(ctx, spent, asked)
		return asProofError(400, err)
	})
	if err != nil {
		return err
	}
	return g.answerPair(ctx, keys, grant)
}

// rotateRefresh exchanges a refresh token for its successor, and logs its reuse, which may mean a theft.
func (g *guard) rotateRefresh(ctx *fasthttp.RequestCtx, spent token.RefreshToken, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	web.IdentifyCaller(ctx, uuid.Nil, spent.Agent)
	if err := g.checkRefreshSize(ctx, spent, asked); err != nil {
		return redisstore.Grant{}, err
	}
	grant, err := g.store.RotateRefresh(web.RequestContext(ctx), spent.Agent, spent.Family, spent.Generation, asked)
	if err == nil {
		g.metrics.tokensByRefresh.Inc()
	}
	if grant.Replayed {
		g.metrics.tokensReplayed.Inc()
	}
	if errors.Is(err, redisstore.ErrTokenReused) {
		g.metrics.tokensReused.Inc()
		g.front.Log.Warn("refresh token reused, family revoked", "request_id", web.RequestID(ctx),
			"agent_id", spent.Agent, "family", spent.Family)
	}
	if err == nil {
		web.IdentifyCaller(ctx, grant.Organization, grant.Agent)
	}
	return grant, err
}

// checkRefreshSize refuses a refresh whose access token would be too long, before it spends anything. Whatever else is wrong with it,
// the refresh itself finds.
func (g *guard) checkRefreshSize(ctx *fasthttp.RequestCtx, spent token.RefreshToken, asked redisstore.GrantRequest) error {
	keys, err := g.keys()
	if err != nil || !keys.MayBeTooLong() {
		return err
	}
	grant, _, err := g.store.CheckRefresh(web.ReadContext(ctx), spent.Agent, spent.Family, spent.Generation)
	if err != nil || grant.Thumbprint != "" && grant.Thumbprint != asked.Proof.Thumbprint() {
		return nil //nolint:nilerr // see above
	}
	if len(asked.Scopes) > 0 {
		grant.Scopes = asked.Scopes
	}
	if len(asked.Audience) > 0 {
		grant.Audience = asked.Audience
	}
	grant.Thumbprint = asked.Proof.Thumbprint()
	return tooLong(keys.CheckAccess(accessOf(keys, grant, g.clock())), grant)
}

func (g *guard) answerPair(ctx *fasthttp.RequestCtx, keys *token.Keyring, grant redisstore.Grant) error {
	pair, err := pairFor(keys, grant, g.clock())
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	return web.AnswerWritten(ctx, pair.append(make([]byte, 0, pairSize)))
}

type revokeRequest struct {
	RefreshToken web.Optional[string] `json:"refresh_token"`
}

type revokedTokenAnswer struct {
	Revoked bool `json:"revoked"`
}

func (g *guard) revokeToken(ctx *fasthttp.RequestCtx) error {
	access, err := g.agentToken(ctx)
	if err != nil {
		return err
	}
	var request revokeRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	_, refresh, err := g.issuedRefresh(request.RefreshToken)
	if err != nil {
		return err
	}
	if refresh.Agent != access.Agent {
		return cmp.Or(g.store.CheckLive(web.RequestContext(ctx), *access.caller.Token), errForeignToken)
	}
	if err := g.revokeFamily(web.RequestContext(ctx), *access.caller.Token, refresh.Family); err != nil {
		return err
	}
	return web.Answer(ctx, revokedTokenAnswer{true})
}

// revokeFamily ends a family of the owner's agent, with its access tokens.
func (g *guard) revokeFamily(ctx context.Context, owner redisstore.AccessToken, family uuid.UUID) error {
	err := g.store.RevokeFamily(ctx, owner, family)
	if err == nil {
		g.metrics.familiesRevoked.Inc()
	}
	return err
}

// validKeySet returns the public signing keys. Clients may cache them, because a new key is published before it signs.
func (g *guard) jwks(ctx *fasthttp.RequestCtx) error {
	keys, err := g.keys()
	if err != nil {
		return err
	}
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=300")
	ctx.Response.Header.SetContentType("application/jwk-set+json")
	ctx.SetBody(keys.JWKS())
	return nil
}

// familyOf returns the agent, the client and the family of an access or refresh token, and an error unless this service issued it
// and it has not expired.
func (g *guard) familyOf(text string) (token.Access, error) {
	if strings.HasPrefix(text, token.RefreshPrefix) {
		refresh, err := g.parseRefresh(text)
		return token.Access{Agent: refresh.Agent, Client: refresh.Agent, Family: refresh.Family}, err
	}
	return g.verifyAccess(text)
}

// revokeDelegated revokes a delegated token for the agent that asked for it. One whose own agent is revoked needs no revocation.
func (g *guard) revokeDelegated(ctx *fasthttp.RequestCtx, client redisstore.AccessToken, revoked token.Access) error {
	owner := redisstore.AccessToken{Organization: client.Organization, Agent: revoked.Agent}
	err := g.revokeFamily(redisstore.WithActor(web.ReadContext(ctx), web.RequestID(ctx), client.Agent), owner, revoked.Family)
	if errors.Is(err, redisstore.ErrInvalidToken) {
		return nil
	}
	return err
}

// scopesLeft returns the scopes that a live access token has left.
func (g *guard) scopesLeft(ctx context.Context, access token.Access) ([]string, error) {
	if delegated := delegatedOf(access); delegated != nil {
		return g.checkDelegated(ctx, caller{scopes: access.Scopes, delegated: delegated})
	}
	left, err := g.store.VerifyToken(ctx, heldBy(access))
	return left.Of(access.Scopes), err
}
