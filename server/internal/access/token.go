package access

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

// TokenRoutes registers the endpoints of tokens below /v1/auth, and the key set.
func (g *Guard) TokenRoutes(r *web.Routes) {
	r.Post("/v1/auth/token", web.NoKey, g.exchangeToken)
	r.Post("/v1/auth/refresh", web.NoKey, g.refreshToken)
	r.Post("/v1/auth/revoke", web.NoKey, g.revokeToken)
	r.Get("/.well-known/jwks.json", web.NoKey, g.jwks)
}

// TokenPair is the answer to an exchange and to a refresh.
type TokenPair struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
}

// pairSize is enough bytes for most pairs.
const pairSize = 1024

// Append writes the pair as the encoder would. Tokens need no escaping.
func (p TokenPair) Append(o web.Object) web.Object {
	o = o.Plain(`{"access_token":`, p.AccessToken)
	o = o.Plain(`,"refresh_token":`, p.RefreshToken)
	o = o.Plain(`,"token_type":`, p.TokenType)
	o = o.Number(`,"expires_in":`, p.ExpiresIn)
	return append(o, '}')
}

// pairFor returns the token pair of a grant. The same grant always gives the same refresh token.
func pairFor(keys *token.Keyring, grant redisstore.Grant, now time.Time) (TokenPair, error) {
	access, err := keys.SignAccess(accessOf(keys, grant, now))
	return TokenPair{
		AccessToken:  access,
		RefreshToken: refreshFor(keys, grant),
		TokenType:    tokenType(grant, "bearer"),
		ExpiresIn:    int64(token.AccessLifetime / time.Second),
	}, tooLong(err, grant)
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

// exchangeRequest is the body of POST /v1/auth/token.
type exchangeRequest struct {
	Agent  web.Optional[string] `json:"agent_id"`
	Secret web.Optional[string] `json:"secret"`
	resourceField
}

// decodeFast reads the body of a token exchange in its usual form. It returns false for any other body; see web.FastReader.
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

// decodeFast reads the body of a refresh so.
func (r *refreshRequest) decodeFast(body []byte) bool {
	rest := web.FastReader(body)
	return rest.Object(func(name []byte) bool { return string(name) == "refresh_token" && rest.TextField(&r.RefreshToken) })
}

// resourceField names the resources that the access token is for (RFC 8707); absent for the default.
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
func (request exchangeRequest) presentedSecret() (Credential, error) {
	var v web.Validation
	agent := v.ID("agent_id", request.Agent)
	v.Require(request.Secret.Given, "secret", "is required")
	if err := v.Err(); err != nil {
		return Credential{}, err
	}
	if token.CheckAgentSecret(request.Secret.Value) != nil {
		return Credential{Agent: agent}, redisstore.ErrInvalidCredentials
	}
	return Credential{Agent: agent, Secret: token.Hash(request.Secret.Value)}, nil
}

// exchange is a request for a token pair: the keys that are to sign it, who presents what, and what it asks for.
type exchange struct {
	keys   *token.Keyring
	client Credential
	asked  redisstore.GrantRequest
}

// ask reads what a request asks for.
func (e *exchange) ask(g *Guard, of resourceField) (err error) {
	if e.keys, err = g.Keys(); err != nil {
		return err
	}
	e.asked, err = of.asked(e.keys.Issuer())
	return err
}

// readExchange reads a request with a secret. An error comes with the agent, if the request names one.
func (g *Guard) readExchange(ctx *fasthttp.RequestCtx) (e exchange, err error) {
	request, err := decodeExchange(ctx)
	if err != nil {
		return e, err
	}
	if e.client, err = request.presentedSecret(); err != nil {
		return e, err
	}
	return e, e.ask(g, request.resourceField)
}

func (g *Guard) exchangeToken(ctx *fasthttp.RequestCtx) error {
	e, err := g.readExchange(ctx)
	return g.answerExchange(ctx, e, err, g.exchangeSecret)
}

// answerExchange authenticates the client of an exchange that was read, unless that failed, and answers with the pair that grant grants.
func (g *Guard) answerExchange(ctx *fasthttp.RequestCtx, e exchange, failed error,
	grant func(*fasthttp.RequestCtx, Credential, redisstore.GrantRequest) (redisstore.Grant, error)) error {
	if failed != nil {
		return g.RejectCredential(ctx, e.client.Agent, failed)
	}
	var granted redisstore.Grant
	err := g.Authenticate(ctx, e.client, func() (err error) {
		if e.asked.Proof, err = g.grantProof(ctx); err != nil {
			return err
		}
		granted, err = grant(ctx, e.client, e.asked)
		return AsProofError(400, err)
	})
	if err != nil {
		return err
	}
	web.IdentifyCaller(ctx, granted.Organization, granted.Agent)
	pair, err := pairFor(e.keys, granted, g.Clock())
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx)
	return web.AnswerWritten(ctx, pair.Append(make([]byte, 0, pairSize)))
}

// refreshRequest is the body of POST /v1/auth/refresh.
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

// issuedRefresh returns the refresh token if this service issued it.
func (g *Guard) issuedRefresh(given web.Optional[string]) (token.RefreshToken, error) {
	if !given.Given {
		return token.RefreshToken{}, web.Invalid("refresh_token", "is required")
	}
	presented, err := g.parseRefresh(given.Value)
	return presented, refused(err, redisstore.ErrInvalidRefreshToken)
}

// readRefresh reads a request with a refresh token. An error comes with the agent, if this service issued the token.
func (g *Guard) readRefresh(ctx *fasthttp.RequestCtx) (e exchange, err error) {
	request, err := decodeRefresh(ctx)
	if err != nil {
		return e, err
	}
	spent, err := g.issuedRefresh(request.RefreshToken)
	if err != nil {
		return e, err
	}
	e.client = Credential{Agent: spent.Agent, refresh: spent}
	return e, e.ask(g, request.resourceField)
}

func (g *Guard) refreshToken(ctx *fasthttp.RequestCtx) error {
	e, err := g.readRefresh(ctx)
	return g.answerExchange(ctx, e, err, g.rotateRefresh)
}

// rotateRefresh exchanges a refresh token for its successor, and logs its reuse, which may mean a theft.
func (g *Guard) rotateRefresh(ctx *fasthttp.RequestCtx, client Credential, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	spent := client.refresh
	web.IdentifyCaller(ctx, uuid.Nil, spent.Agent)
	if err := g.checkRefreshSize(ctx, spent, asked); err != nil {
		return redisstore.Grant{}, err
	}
	grant, err := g.Store.RotateRefresh(web.RequestContext(ctx), spent.Agent, spent.Family, spent.Generation, asked)
	if err == nil {
		g.Metrics.tokensByRefresh.Inc()
	}
	if grant.Replayed {
		g.Metrics.tokensReplayed.Inc()
	}
	if errors.Is(err, redisstore.ErrTokenReused) {
		g.Metrics.tokensReused.Inc()
		g.Front.Log.Warn("refresh token reused, family revoked", "request_id", web.RequestID(ctx),
			"agent_id", spent.Agent, "family", spent.Family)
	}
	return grant, err
}

// checkRefreshSize refuses a refresh whose access token would be too long, before it spends anything. Whatever else is wrong with it,
// the refresh itself finds.
func (g *Guard) checkRefreshSize(ctx *fasthttp.RequestCtx, spent token.RefreshToken, asked redisstore.GrantRequest) error {
	keys, err := g.Keys()
	if err != nil || !keys.MayBeTooLong() {
		return err
	}
	grant, _, err := g.Store.CheckRefresh(web.ReadContext(ctx), spent.Agent, spent.Family, spent.Generation)
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
	return tooLong(keys.CheckAccess(accessOf(keys, grant, g.Clock())), grant)
}

type revokeRequest struct {
	RefreshToken web.Optional[string] `json:"refresh_token"`
}

// RevokedTokenAnswer says that a token works no more.
type RevokedTokenAnswer struct {
	Revoked bool `json:"revoked"`
}

func (g *Guard) revokeToken(ctx *fasthttp.RequestCtx) error {
	access, err := g.AgentToken(ctx)
	if err != nil {
		return err
	}
	var request revokeRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	refresh, err := g.issuedRefresh(request.RefreshToken)
	if err != nil {
		return err
	}
	if refresh.Agent != access.Agent {
		return cmp.Or(g.Store.CheckLive(web.RequestContext(ctx), *access.Caller.Token), ErrForeignToken)
	}
	if err := g.revokeFamily(web.RequestContext(ctx), *access.Caller.Token, refresh.Family); err != nil {
		return err
	}
	return web.Answer(ctx, RevokedTokenAnswer{true})
}

// revokeFamily ends a family of the owner's agent, with its access tokens.
func (g *Guard) revokeFamily(ctx context.Context, owner redisstore.AccessToken, family uuid.UUID) error {
	err := g.Store.RevokeFamily(ctx, owner, family)
	if err == nil {
		g.Metrics.FamiliesRevoked.Inc()
	}
	return err
}

// validKeySet returns the public signing keys. Clients may cache them, because a new key is published before it signs.
func (g *Guard) jwks(ctx *fasthttp.RequestCtx) error {
	keys, err := g.Keys()
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
func (g *Guard) familyOf(text string) (token.Access, error) {
	if strings.HasPrefix(text, token.RefreshPrefix) {
		refresh, err := g.parseRefresh(text)
		return token.Access{Agent: refresh.Agent, Client: refresh.Agent, Family: refresh.Family}, err
	}
	return g.verifyAccess(text)
}

// revokeDelegated revokes a delegated token for the agent that asked for it. One whose own agent is revoked needs no revocation.
func (g *Guard) revokeDelegated(ctx *fasthttp.RequestCtx, client redisstore.AccessToken, revoked token.Access) error {
	owner := redisstore.AccessToken{Organization: client.Organization, Agent: revoked.Agent}
	err := g.revokeFamily(redisstore.WithActor(web.ReadContext(ctx), web.RequestID(ctx), client.Agent), owner, revoked.Family)
	if errors.Is(err, redisstore.ErrInvalidToken) {
		return nil
	}
	return err
}

// scopesLeft returns the scopes that a live access token has left.
func (g *Guard) scopesLeft(ctx context.Context, access token.Access) ([]string, error) {
	if delegated := delegatedOf(access); delegated != nil {
		return g.CheckDelegated(ctx, Caller{Scopes: access.Scopes, Delegated: delegated})
	}
	left, err := g.Store.VerifyToken(ctx, heldBy(access))
	return left.Of(access.Scopes), err
}
