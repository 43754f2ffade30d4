package access

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// oauth does an operation with the form that was sent, and answers its errors as RFC 6749 has them.
func (g *Guard) oauth(ctx *fasthttp.RequestCtx, do func(url.Values) error) error {
	web.KeepFromCaches(ctx)
	ctx.Response.Header.Set(fasthttp.HeaderPragma, "no-cache")
	form, err := ReadForm(ctx)
	if err != nil {
		err = g.RejectCredential(ctx, uuid.Nil, err)
	} else {
		err = do(form)
	}
	if err != nil {
		return g.answerOAuthError(ctx, err)
	}
	return nil
}

// byClient returns an operation that a client does. read reads who the client says it is. do authenticates the client, with
// authenticatedClient or by exchanging what it presents: the rate limiter counts its error.
func (g *Guard) byClient(ctx *fasthttp.RequestCtx, read clientReader, do func(Credential, url.Values) error) func(url.Values) error {
	return func(form url.Values) error {
		client, err := read(ctx, form)
		if err != nil {
			return g.RejectCredential(ctx, client.Agent, err)
		}
		client.refresh = g.signedRefresh(form.Get("refresh_token"), client.Agent)
		return g.Authenticate(ctx, client, func() error { return do(client, form) })
	}
}

// authenticatedClient returns the client once the store has confirmed what it presents. The operation's required parameter is
// checked first, because a request without it needs no store.
func (g *Guard) authenticatedClient(ctx *fasthttp.RequestCtx, client Credential, form url.Values, required string) (redisstore.AccessToken, error) {
	if form.Get(required) == "" {
		return redisstore.AccessToken{}, &OAuthError{"invalid_request", required + " is required"}
	}
	organization, err := g.checkClient(ctx, client)
	if err != nil {
		return redisstore.AccessToken{}, err
	}
	web.IdentifyCaller(ctx, organization, client.Agent)
	return redisstore.AccessToken{Organization: organization, Agent: client.Agent}, nil
}

// signedRefresh returns a refresh token of the agent that this service issued, spent or not, and the zero value for any
// other text.
func (g *Guard) signedRefresh(text string, agent uuid.UUID) token.RefreshToken {
	if text == "" {
		return token.RefreshToken{}
	}
	signed, err := g.parseRefresh(text)
	if err != nil || signed.Agent != agent {
		return token.RefreshToken{}
	}
	return signed
}

// repeatable are the parameters that may be given several times (RFC 8707 §2, RFC 8693 §2.1).
var repeatable = map[string]bool{"resource": true, "audience": true}

// ReadForm reads the parameters. A repeated parameter that is not repeatable is an error, an unknown one is ignored, and an empty
// one counts as absent (RFC 6749 §3.2).
func ReadForm(ctx *fasthttp.RequestCtx) (url.Values, error) {
	header := &ctx.Request.Header
	if web.CountHeader(header.RawHeaders(), fasthttp.HeaderContentType) > 1 || len(header.Peek(fasthttp.HeaderContentEncoding)) > 0 {
		return nil, &OAuthError{"invalid_request", "the body must have one Content-Type and no Content-Encoding"}
	}
	mediaType, _, _ := strings.Cut(string(header.ContentType()), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded") {
		return nil, &OAuthError{"invalid_request", "the body must be application/x-www-form-urlencoded"}
	}
	form, err := url.ParseQuery(string(ctx.Request.Body()))
	if err != nil {
		return nil, &OAuthError{"invalid_request", "the body is not well-formed"}
	}
	for name, values := range form {
		if len(values) > 1 && !repeatable[name] {
			return nil, &OAuthError{"invalid_request", "a parameter is given twice"}
		}
	}
	return form, nil
}

// clientReader reads the credentials of a client. An error comes with the agent that they name, if there is one.
type clientReader func(*fasthttp.RequestCtx, url.Values) (Credential, error)

// readTokenClient reads the client's credentials as the grant has them.
func (g *Guard) readTokenClient(ctx *fasthttp.RequestCtx, form url.Values) (Credential, error) {
	if form.Get("grant_type") == grantJWTBearer {
		return readWorkload(ctx, form)
	}
	return g.readClient(ctx, form)
}

// readClient reads the client's credentials: an assertion that it signed, or its secret.
func (g *Guard) readClient(ctx *fasthttp.RequestCtx, form url.Values) (Credential, error) {
	if hasClientAssertion(form) {
		return g.readClientAssertion(ctx, form)
	}
	return ReadClientSecret(ctx, form)
}

// ReadClientSecret reads the client's secret from the Authorization header, or else from the form (RFC 6749 §2.3.1). It
// refuses a malformed secret without asking the store; the error then comes with the agent, if there is one.
func ReadClientSecret(ctx *fasthttp.RequestCtx, form url.Values) (Credential, error) {
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if header := string(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)); header != "" {
		if secret != "" {
			return Credential{}, &OAuthError{"invalid_request", "send the client's credentials once"}
		}
		basicID, basicSecret, ok := readBasic(header)
		if !ok || id != "" && id != basicID {
			return Credential{}, redisstore.ErrInvalidCredentials
		}
		id, secret = basicID, basicSecret
	}
	agent, ok := web.ParseID(id)
	if !ok || token.CheckAgentSecret(secret) != nil {
		return Credential{Agent: agent}, redisstore.ErrInvalidCredentials
	}
	return Credential{Agent: agent, Secret: token.Hash(secret)}, nil
}

// readBasic reads HTTP Basic credentials, whose two halves are form-encoded before the Base64 (RFC 6749 §2.3.1).
func readBasic(header string) (id, secret string, ok bool) {
	scheme, encoded, _ := strings.Cut(header, " ")
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !strings.EqualFold(scheme, "Basic") || err != nil {
		return "", "", false
	}
	first, second, found := strings.Cut(string(raw), ":")
	id, idErr := url.QueryUnescape(first)
	secret, secretErr := url.QueryUnescape(second)
	return id, secret, found && idErr == nil && secretErr == nil
}

func readGrantRequest(form url.Values, issuer string) (redisstore.GrantRequest, error) {
	scopes, err := scopesIn(form)
	if err != nil {
		return redisstore.GrantRequest{}, err
	}
	audience, err := audienceIn(form, issuer)
	return redisstore.GrantRequest{Scopes: scopes, Audience: audience}, err
}

func scopesIn(form url.Values) ([]string, error) {
	scopes := strings.Fields(form.Get("scope"))
	var v web.Validation
	if v.Scopes(scopes); v.Err() != nil {
		return nil, &OAuthError{"invalid_scope", "scope is not a list of distinct scopes"}
	}
	return scopes, nil
}
