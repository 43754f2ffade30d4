package access

import (
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// The OAuth 2.0 endpoints do the same operations as /v1/auth: a client is an agent, its client_id the agent's id and its
// client_secret the agent's secret. Requests are form-encoded, errors are those of RFC 6749 §5.2.

// OAuthRoutes registers the endpoints of OAuth 2.0 below /oauth2.
func (g *Guard) OAuthRoutes(r *web.Routes) {
	r.Post("/oauth2/token", web.NoKey, g.oauthToken)
	r.Get("/oauth2/authorize", web.NoKey, g.oauthAuthorize)
	r.Post("/oauth2/revoke", web.NoKey, g.oauthRevoke)
	r.Post("/oauth2/introspect", web.NoKey, g.oauthIntrospect)
}

// OAuthGrant is a response of the token endpoint (RFC 6749 §5.1).
type OAuthGrant struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token,omitzero"`
	Scope        string `json:"scope"`
}

// oauthToken serves the client_credentials and refresh_token grants (RFC 6749 §4.4 and §6), the jwt-bearer grant (RFC 7523 §2.1) and
// token exchange (RFC 8693).
func (g *Guard) oauthToken(ctx *fasthttp.RequestCtx) error {
	byClient := g.byClient(ctx, g.readTokenClient, func(client Credential, form url.Values) error {
		return g.answerGrant(ctx, client, form)
	})
	return g.oauth(ctx, func(form url.Values) error {
		if form.Get("grant_type") == grantTokenExchange {
			return g.delegate(ctx, form)
		}
		return byClient(form)
	})
}

// answerGrant answers with the tokens that a client is granted.
func (g *Guard) answerGrant(ctx *fasthttp.RequestCtx, client Credential, form url.Values) error {
	keys, err := g.Keys()
	if err != nil {
		return err
	}
	asked, err := readGrantRequest(form, keys.Issuer())
	if err != nil {
		return err
	}
	if err := checkGrant(form); err != nil {
		return err
	}
	if asked.Proof, err = g.grantProof(ctx); err != nil {
		return err
	}
	grant, err := g.grantFor(ctx, client, form, asked, keys.Issuer())
	if err != nil {
		return err
	}
	web.IdentifyCaller(ctx, grant.Organization, grant.Agent)
	pair, err := pairFor(keys, grant, g.Clock())
	if err != nil {
		return err
	}
	return web.Answer(ctx, OAuthGrant{
		AccessToken: pair.AccessToken, TokenType: tokenType(grant, "Bearer"), ExpiresIn: pair.ExpiresIn,
		RefreshToken: pair.RefreshToken, Scope: strings.Join(grant.Scopes, " "),
	})
}

// checkGrant refuses an unknown grant before its proof costs anything: no client is authenticated yet, so no limit counts it.
func checkGrant(form url.Values) error {
	switch form.Get("grant_type") {
	case "client_credentials", grantJWTBearer:
		return nil
	case "refresh_token":
		if form.Get("refresh_token") == "" {
			return &OAuthError{"invalid_request", "refresh_token is required"}
		}
		return nil
	case "":
		return &OAuthError{"invalid_request", "grant_type is required"}
	}
	return &OAuthError{"unsupported_grant_type", "use client_credentials, refresh_token, " + grantJWTBearer + " or " + grantTokenExchange}
}

// grantFor grants what checkGrant lets through.
func (g *Guard) grantFor(ctx *fasthttp.RequestCtx, client Credential, form url.Values, asked redisstore.GrantRequest, issuer string) (redisstore.Grant, error) {
	switch form.Get("grant_type") {
	case "refresh_token":
		return g.oauthRefresh(ctx, client, form, asked)
	case grantJWTBearer:
		return g.grantByIssuer(ctx, client.Agent, form.Get("assertion"), issuer, asked)
	}
	return g.exchangeClient(ctx, client, asked)
}

func (g *Guard) oauthRefresh(ctx *fasthttp.RequestCtx, client Credential, form url.Values, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	if _, err := g.authenticatedClient(ctx, client, form, "refresh_token"); err != nil {
		return redisstore.Grant{}, err
	}
	spent, err := g.parseRefresh(form.Get("refresh_token"))
	if KeysUnavailable(err) {
		return redisstore.Grant{}, err
	}
	if err != nil || spent.Agent != client.Agent {
		return redisstore.Grant{}, redisstore.ErrInvalidRefreshToken
	}
	return g.rotateRefresh(ctx, Credential{Agent: spent.Agent, refresh: spent}, asked)
}

// oauthAuthorize refuses: there is no authorization by users (RFC 6749 §4.1.2.1, without a client to redirect to).
func (g *Guard) oauthAuthorize(ctx *fasthttp.RequestCtx) error {
	return g.answerOAuthError(ctx, &OAuthError{"unsupported_response_type", "there is no authorization by users; use client_credentials"})
}

// oauthRevoke revokes the family of a refresh or access token of the client (RFC 7009). An invalid token succeeds, because
// it needs no revocation (RFC 7009 §2.2).
func (g *Guard) oauthRevoke(ctx *fasthttp.RequestCtx) error {
	return g.oauth(ctx, g.byClient(ctx, g.readClient, func(client Credential, form url.Values) error {
		authenticated, err := g.authenticatedClient(ctx, client, form, "token")
		if err != nil {
			return err
		}
		revoked, err := g.familyOf(form.Get("token"))
		switch {
		case KeysUnavailable(err):
			return err
		case err != nil:
			return nil //nolint:nilerr // see above
		case revoked.Agent != client.Agent && revoked.Client != client.Agent:
			return &OAuthError{"invalid_grant", "the token was issued to another client"}
		case revoked.Agent != client.Agent:
			return g.revokeDelegated(ctx, authenticated, revoked)
		default:
			return g.revokeFamily(web.RequestContext(ctx), authenticated, revoked.Family)
		}
	}))
}

// oauthIntrospect describes a token of the client's organization (RFC 7662).
func (g *Guard) oauthIntrospect(ctx *fasthttp.RequestCtx) error {
	return g.oauth(ctx, g.byClient(ctx, g.readClient, func(client Credential, form url.Values) error {
		authenticated, err := g.authenticatedClient(ctx, client, form, "token")
		if err != nil {
			return err
		}
		if len(form["audience"]) > 1 {
			return &OAuthError{"invalid_request", "a parameter is given twice"}
		}
		described, err := g.describeToken(web.ReadContext(ctx), form.Get("token"), form.Get("audience"), authenticated.Organization)
		if err != nil {
			return err
		}
		return web.Answer(ctx, described)
	}))
}
