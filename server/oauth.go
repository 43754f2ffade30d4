package server

import (
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

func (s *Server) oauthRoutes(r *routes) {
	r.post("/oauth2/token", s.oauthToken)
	r.get("/oauth2/authorize", s.oauthAuthorize)
	r.post("/oauth2/revoke", s.oauthRevoke)
	r.post("/oauth2/introspect", s.oauthIntrospect)
}

// The OAuth 2.0 face of the same operations: a client is an agent, its client_id the agent's id and its client_secret
// the agent's secret. Requests are form-encoded, errors are those of RFC 6749 §5.2.

// oauthGrant is an answer of the token endpoint (RFC 6749 §5.1).
type oauthGrant struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token"`
	Scope        string `json:"scope"`
}

// oauthToken answers the client_credentials and refresh_token grants (RFC 6749 §4.4 and §6).
func (s *Server) oauthToken(ctx *fasthttp.RequestCtx) error {
	return s.oauth(ctx, func(client oauthClient, form url.Values) error {
		scopes, err := scopesIn(form)
		if err != nil {
			return err
		}
		keys, err := s.keys()
		if err != nil {
			return err
		}
		var grant redisstore.Grant
		switch form.Get("grant_type") {
		case "client_credentials":
			if grant, err = s.store.ExchangeSecret(forRequest(ctx), client.agent, token.Hash(client.secret), scopes...); err == nil {
				s.counts.tokensBySecret.Inc()
			}
		case "refresh_token":
			grant, err = s.oauthRefresh(ctx, client, form, scopes)
		case "":
			err = &oauthError{"invalid_request", "grant_type is required"}
		default:
			err = &oauthError{"unsupported_grant_type", "use client_credentials or refresh_token"}
		}
		if err != nil {
			return err
		}
		askedBy(ctx, grant.Organization, grant.Agent)
		pair, err := pairFor(keys, grant)
		if err != nil {
			return err
		}
		return answer(ctx, oauthGrant{
			AccessToken: pair.AccessToken, TokenType: "Bearer", ExpiresIn: pair.ExpiresIn,
			RefreshToken: pair.RefreshToken, Scope: strings.Join(grant.Scopes, " "),
		})
	})
}

func (s *Server) oauthRefresh(ctx *fasthttp.RequestCtx, client oauthClient, form url.Values, scopes []string) (redisstore.Grant, error) {
	if form.Get("refresh_token") == "" {
		return redisstore.Grant{}, &oauthError{"invalid_request", "refresh_token is required"}
	}
	organization, err := s.store.CheckSecret(forRequest(ctx), client.agent, token.Hash(client.secret))
	if err != nil {
		return redisstore.Grant{}, err
	}
	askedBy(ctx, organization, client.agent)
	spent, err := s.parseRefresh(form.Get("refresh_token"))
	if cannotSay(err) {
		return redisstore.Grant{}, err
	}
	if err != nil || spent.Agent != client.agent {
		return redisstore.Grant{}, redisstore.ErrInvalidRefreshToken
	}
	return s.spend(ctx, spent, scopes...)
}

// oauthAuthorize refuses: no user authorizes here (RFC 6749 §4.1.2.1, without a client to redirect to).
func (s *Server) oauthAuthorize(ctx *fasthttp.RequestCtx) error {
	return s.answerOAuthError(ctx, &oauthError{"unsupported_response_type", "there is no authorization by users; use client_credentials"})
}

// oauthRevoke revokes the family of a refresh or access token of the client (RFC 7009). A token that is none succeeds:
// it is as revoked as it can be.
func (s *Server) oauthRevoke(ctx *fasthttp.RequestCtx) error {
	return s.oauth(ctx, func(client oauthClient, form url.Values) error {
		if form.Get("token") == "" {
			return &oauthError{"invalid_request", "token is required"}
		}
		organization, err := s.store.CheckSecret(forRequest(ctx), client.agent, token.Hash(client.secret))
		if err != nil {
			return err
		}
		askedBy(ctx, organization, client.agent)
		agent, family, err := s.familyOf(form.Get("token"))
		switch {
		case cannotSay(err):
			return err
		case err != nil:
			return nil //nolint:nilerr // a token that is none is as revoked as it can be
		}
		if agent != client.agent {
			return &oauthError{"invalid_grant", "the token was issued to another client"}
		}
		asks := redisstore.AccessToken{Organization: organization, Agent: agent}
		if err := s.store.RevokeFamily(forRequest(ctx), asks, family); err != nil {
			return err
		}
		s.counts.familiesRevoked.Inc()
		return nil
	})
}

// familyOf returns whose token it is and of which family, and an error unless it is one of ours that has not expired.
func (s *Server) familyOf(text string) (agent, family uuid.UUID, err error) {
	if strings.HasPrefix(text, token.RefreshPrefix) {
		refresh, err := s.parseRefresh(text)
		return refresh.Agent, refresh.Family, err
	}
	access, err := s.verifyAccess(text)
	return access.Agent, access.Family, err
}

// oauthIntrospect describes a token of the client's organization (RFC 7662).
func (s *Server) oauthIntrospect(ctx *fasthttp.RequestCtx) error {
	return s.oauth(ctx, func(client oauthClient, form url.Values) error {
		if form.Get("token") == "" {
			return &oauthError{"invalid_request", "token is required"}
		}
		organization, err := s.store.CheckSecret(forRequest(ctx), client.agent, token.Hash(client.secret))
		if err != nil {
			return err
		}
		askedBy(ctx, organization, client.agent)
		described, err := s.describeToken(forReading(ctx), form.Get("token"), organization)
		if err != nil {
			return err
		}
		return answer(ctx, described)
	})
}

// oauth does an operation for a client, and says its errors in the words of RFC 6749.
func (s *Server) oauth(ctx *fasthttp.RequestCtx, do func(oauthClient, url.Values) error) error {
	keepFromCaches(ctx)
	ctx.Response.Header.Set(fasthttp.HeaderPragma, "no-cache")
	err := s.asClient(ctx, do)
	if err != nil {
		return s.answerOAuthError(ctx, err)
	}
	return nil
}

func (s *Server) asClient(ctx *fasthttp.RequestCtx, do func(oauthClient, url.Values) error) error {
	form, err := readForm(ctx)
	if err != nil {
		return s.refuseCredential(ctx, uuid.Nil, err)
	}
	client, err := readClient(ctx, form)
	if err != nil {
		return s.refuseCredential(ctx, client.agent, err)
	}
	presented := credential{agent: client.agent, secret: token.Hash(client.secret)}
	if refresh := form.Get("refresh_token"); refresh != "" {
		presented.refresh = s.signedRefresh(refresh, client.agent)
	}
	return s.authenticate(ctx, presented, func() error { return do(client, form) })
}

// signedRefresh returns a refresh token of the agent that was made here, spent or not; none for any other.
func (s *Server) signedRefresh(text string, agent uuid.UUID) token.RefreshToken {
	signed, err := s.parseRefresh(text)
	if err != nil || signed.Agent != agent {
		return token.RefreshToken{}
	}
	return signed
}
