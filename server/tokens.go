package server

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

func (s *Server) tokenRoutes(r *routes) {
	r.post("/v1/auth/token", s.exchangeToken)
	r.post("/v1/auth/refresh", s.refreshToken)
	r.post("/v1/auth/revoke", s.revokeToken)
	r.get("/.well-known/jwks.json", s.jwks)
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
func (p tokenPair) append(o object) object {
	o = o.plain(`{"access_token":`, p.AccessToken)
	o = o.plain(`,"refresh_token":`, p.RefreshToken)
	o = o.plain(`,"token_type":`, p.TokenType)
	o = o.number(`,"expires_in":`, p.ExpiresIn)
	return append(o, '}')
}

// pairFor returns the token pair of a grant. The same grant always gives the same refresh token.
func pairFor(keys *token.Keyring, grant redisstore.Grant) (tokenPair, error) {
	content := token.Access{
		Agent: grant.Agent, Organization: grant.Organization, Family: grant.Family,
		Scopes: grant.Scopes, Issued: time.Now(), Thumbprint: grant.Thumbprint,
	}
	if grant.Bound {
		content.Audience, content.Client = []string{keys.Issuer()}, grant.Agent
	}
	access, err := keys.SignAccess(content)
	return tokenPair{
		AccessToken: access,
		RefreshToken: keys.FormatRefresh(token.RefreshToken{
			Agent: grant.Agent, Family: grant.Family, Generation: grant.Generation,
		}),
		TokenType: tokenType(grant, "bearer"),
		ExpiresIn: int64(token.AccessLifetime / time.Second),
	}, err
}

// tokenType returns how an access token is presented: by the scheme DPoP if it is bound to a key (RFC 9449 §5).
func tokenType(grant redisstore.Grant, unbound string) string {
	if grant.Bound {
		return "DPoP"
	}
	return unbound
}

type exchangeRequest struct {
	Agent  optional[string] `json:"agent_id"`
	Secret optional[string] `json:"secret"`
}

// decodeExchange is decode for an exchange; see decodeCharge.
func decodeExchange(ctx *fasthttp.RequestCtx) (exchangeRequest, error) {
	var fast exchangeRequest
	if isJSON(&ctx.Request.Header) && fast.decodeFast(ctx.Request.Body()) {
		return fast, nil
	}
	var request exchangeRequest
	err := decode(ctx, &request)
	return request, err
}

// presentedSecret returns the agent id and the hash of the secret in the body. It refuses a malformed secret without asking
// the store; the error then comes with the agent.
func presentedSecret(ctx *fasthttp.RequestCtx) (credential, error) {
	request, err := decodeExchange(ctx)
	if err != nil {
		return credential{}, err
	}
	var v validation
	agent := v.id("agent_id", request.Agent)
	v.require(request.Secret.given, "secret", "is required")
	if err := v.err(); err != nil {
		return credential{}, err
	}
	if token.CheckAgentSecret(request.Secret.value) != nil {
		return credential{agent: agent}, redisstore.ErrInvalidCredentials
	}
	return credential{agent: agent, secret: token.Hash(request.Secret.value)}, nil
}

func (s *Server) exchangeToken(ctx *fasthttp.RequestCtx) error {
	presented, err := presentedSecret(ctx)
	if err != nil {
		return s.rejectCredential(ctx, presented.agent, err)
	}
	keys, err := s.keys()
	if err != nil {
		return err
	}
	var grant redisstore.Grant
	err = s.authenticate(ctx, presented, func() (err error) {
		proof, err := s.grantProof(ctx)
		if err != nil {
			return err
		}
		grant, err = s.store.ExchangeSecret(requestContext(ctx), presented.agent, presented.secret, redisstore.GrantRequest{Proof: proof})
		return asProofError(400, err)
	})
	if err != nil {
		return err
	}
	s.metrics.tokensBySecret.Inc()
	identifyCaller(ctx, grant.Organization, grant.Agent)
	return answerPair(ctx, keys, grant)
}

type refreshRequest struct {
	RefreshToken optional[string] `json:"refresh_token"`
}

// decodeRefresh is decode for a refresh; see decodeCharge.
func decodeRefresh(ctx *fasthttp.RequestCtx) (refreshRequest, error) {
	var fast refreshRequest
	if isJSON(&ctx.Request.Header) && fast.decodeFast(ctx.Request.Body()) {
		return fast, nil
	}
	var request refreshRequest
	err := decode(ctx, &request)
	return request, err
}

// presentedRefresh returns the refresh token in the body if this service issued it, with the keys to sign its successor.
func (s *Server) presentedRefresh(ctx *fasthttp.RequestCtx) (*token.Keyring, token.RefreshToken, error) {
	request, err := decodeRefresh(ctx)
	if err != nil {
		return nil, token.RefreshToken{}, err
	}
	if !request.RefreshToken.given {
		return nil, token.RefreshToken{}, invalid("refresh_token", "is required")
	}
	presented, err := s.parseRefresh(request.RefreshToken.value)
	if keysUnavailable(err) {
		return nil, token.RefreshToken{}, err
	}
	if err != nil {
		return nil, token.RefreshToken{}, redisstore.ErrInvalidRefreshToken
	}
	keys, err := s.keys()
	return keys, presented, err
}

func (s *Server) refreshToken(ctx *fasthttp.RequestCtx) error {
	keys, spent, err := s.presentedRefresh(ctx)
	if err != nil {
		return s.rejectCredential(ctx, uuid.Nil, err)
	}
	var grant redisstore.Grant
	err = s.authenticate(ctx, credential{agent: spent.Agent, refresh: spent}, func() (err error) {
		proof, err := s.grantProof(ctx)
		if err != nil {
			return err
		}
		grant, err = s.rotateRefresh(ctx, spent, redisstore.GrantRequest{Proof: proof})
		return asProofError(400, err)
	})
	if err != nil {
		return err
	}
	return answerPair(ctx, keys, grant)
}

// rotateRefresh exchanges a refresh token for its successor, and logs its reuse, which may mean a theft.
func (s *Server) rotateRefresh(ctx *fasthttp.RequestCtx, spent token.RefreshToken, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	identifyCaller(ctx, uuid.Nil, spent.Agent)
	grant, err := s.store.RotateRefresh(requestContext(ctx), spent.Agent, spent.Family, spent.Generation, asked)
	if err == nil {
		s.metrics.tokensByRefresh.Inc()
	}
	if grant.Replayed {
		s.metrics.tokensReplayed.Inc()
	}
	if errors.Is(err, redisstore.ErrTokenReused) {
		s.metrics.tokensReused.Inc()
		s.log.Warn("refresh token reused, family revoked", "request_id", requestID(ctx),
			"agent_id", spent.Agent, "family", spent.Family)
	}
	if err == nil {
		identifyCaller(ctx, grant.Organization, grant.Agent)
	}
	return grant, err
}

func answerPair(ctx *fasthttp.RequestCtx, keys *token.Keyring, grant redisstore.Grant) error {
	pair, err := pairFor(keys, grant)
	if err != nil {
		return err
	}
	keepFromCaches(ctx)
	return answerWritten(ctx, pair.append(make([]byte, 0, pairSize)))
}

type revokedTokenAnswer struct {
	Revoked bool `json:"revoked"`
}

func (s *Server) revokeToken(ctx *fasthttp.RequestCtx) error {
	access, err := s.agentToken(ctx)
	if err != nil {
		return err
	}
	_, refresh, err := s.presentedRefresh(ctx)
	if err != nil {
		return err
	}
	if refresh.Agent != access.Agent {
		return cmp.Or(s.store.CheckLive(requestContext(ctx), *access.caller.Token), errForeignToken)
	}
	if err := s.store.RevokeFamily(requestContext(ctx), *access.caller.Token, refresh.Family); err != nil {
		return err
	}
	s.metrics.familiesRevoked.Inc()
	return answer(ctx, revokedTokenAnswer{true})
}

// jwks returns the public signing keys. Clients may cache them, because a new key is published before it signs.
func (s *Server) jwks(ctx *fasthttp.RequestCtx) error {
	keys, err := s.keys()
	if err != nil {
		return err
	}
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=300")
	ctx.Response.Header.SetContentType("application/jwk-set+json")
	ctx.SetBody(keys.JWKS())
	return nil
}

// familyOf returns the agent and the family of an access or refresh token, and an error unless this service issued it and
// it has not expired.
func (s *Server) familyOf(text string) (agent, family uuid.UUID, err error) {
	if strings.HasPrefix(text, token.RefreshPrefix) {
		refresh, err := s.parseRefresh(text)
		return refresh.Agent, refresh.Family, err
	}
	access, err := s.verifyAccess(text)
	return access.Agent, access.Family, err
}
