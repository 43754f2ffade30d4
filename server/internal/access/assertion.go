package access

import (
	"crypto/sha256"
	"errors"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/jwksfetch"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

const (
	// ClientAssertionType is the only client_assertion_type (RFC 7523 §2.2).
	ClientAssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

	maxAssertionLifetime = 10 * time.Minute // from now until exp
	maxAssertionID       = 255              // bytes of jti
	// assertionMargin is how much longer an assertion is known as used than this instance takes it: the clocks of others differ.
	assertionMargin = time.Minute
)

// ErrNoClientKeys refuses an assertion that cannot be verified now.
var ErrNoClientKeys = errors.New("the client's keys cannot be read now; nothing was changed")

// hasClientAssertion says whether a request presents an assertion of its client.
func hasClientAssertion(form url.Values) bool {
	return form.Get("client_assertion") != "" || form.Get("client_assertion_type") != ""
}

// readClientAssertion reads the credentials of a client that signs an assertion (private_key_jwt), and checks what needs no key.
// An error comes with the agent, if the assertion names one.
func (g *Guard) readClientAssertion(ctx *fasthttp.RequestCtx, form url.Values) (Credential, error) {
	if len(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)) > 0 || form.Get("client_secret") != "" {
		return Credential{}, &OAuthError{"invalid_request", "send the client's credentials once"}
	}
	for _, required := range []string{"client_assertion", "client_assertion_type"} {
		if form.Get(required) == "" {
			return Credential{}, &OAuthError{"invalid_request", required + " is required"}
		}
	}
	keys, err := g.Keys()
	if err != nil {
		return Credential{}, err
	}
	assertion, err := token.ParseAssertion(form.Get("client_assertion"))
	if err != nil {
		return Credential{}, redisstore.ErrInvalidCredentials
	}
	agent, isID := web.ParseID(assertion.Subject)
	named, isNamed := web.ParseID(form.Get("client_id"))
	audience := []string{keys.Issuer(), keys.Issuer() + "/oauth2/token", keys.Issuer() + string(ctx.Path())}
	switch {
	case form.Get("client_assertion_type") != ClientAssertionType,
		!isID, assertion.Issuer != assertion.Subject, form.Get("client_id") != "" && (!isNamed || named != agent),
		!assertion.HasType("JWT", "client-authentication+jwt"), !assertion.IsFor(audience...),
		len(assertion.Audience) != 1, // another server that it is for could use it here, see draft-ietf-oauth-rfc7523bis
		!isFreshAssertion(assertion, time.Now()):
		return Credential{Agent: agent}, redisstore.ErrInvalidCredentials
	}
	return Credential{Agent: agent, assertion: assertion}, nil
}

func isFreshAssertion(a *token.Assertion, now time.Time) bool {
	return a.CheckTimes(now) == nil && !a.Expires.After(now.Add(maxAssertionLifetime+token.AssertionSkew)) &&
		len(a.ID) >= 1 && len(a.ID) <= maxAssertionID
}

// verifyClient returns the client's assertion once a key of the agent has proven it. It is not used up by that.
func (g *Guard) verifyClient(ctx *fasthttp.RequestCtx, client Credential) (redisstore.ClientAssertion, error) {
	keys, err := g.Store.ClientKeys(web.ReadContext(ctx), client.Agent)
	if err != nil {
		return redisstore.ClientAssertion{}, err
	}
	source := jwksfetch.Source{Tenant: keys.Organization, URL: keys.JWKSURI, MaxKeys: token.MaxKeys}
	switch err := g.verifyAssertion(ctx, client.assertion, keys.JWKS, source); {
	case errors.Is(err, token.ErrSignature), errors.Is(err, token.ErrUnknownKey):
		return redisstore.ClientAssertion{}, redisstore.ErrInvalidCredentials
	case errors.Is(err, jwksfetch.ErrNoKeys):
		return redisstore.ClientAssertion{}, ErrNoClientKeys
	case err != nil:
		return redisstore.ClientAssertion{}, err
	}
	digest := sha256.Sum256([]byte(client.assertion.ID))
	return redisstore.ClientAssertion{
		Agent: client.Agent, Keys: keys, ID: [16]byte(digest[:16]),
		Left: time.Until(client.assertion.Expires) + token.AssertionSkew + assertionMargin,
	}, nil
}

// verifyAssertion returns nil when the assertion is signed with a key of its source or, if that has no URL, of the key set.
// Errors: token.ErrUnknownKey, token.ErrSignature, jwksfetch.ErrNoKeys.
func (g *Guard) verifyAssertion(ctx *fasthttp.RequestCtx, a *token.Assertion, jwks string, source jwksfetch.Source) error {
	if source.URL == "" {
		keys, err := token.ParseJWKS([]byte(jwks))
		if err != nil {
			return err
		}
		return a.Verify(keys)
	}
	if g.KeySets == nil {
		return jwksfetch.ErrNoKeys
	}
	return g.KeySets.Verify(web.ReadContext(ctx), source, a)
}

// exchangeClient opens a family for a client by what it presents.
func (g *Guard) exchangeClient(ctx *fasthttp.RequestCtx, client Credential, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	if client.assertion == nil {
		return g.exchangeSecret(ctx, client, asked)
	}
	verified, err := g.verifyClient(ctx, client)
	if err != nil {
		return redisstore.Grant{}, err
	}
	grant, err := g.Store.ExchangeAssertion(web.RequestContext(ctx), verified, asked)
	if err == nil {
		g.Metrics.tokensByAssertion.Inc()
	}
	return grant, err
}

// checkClient authenticates a client by what it presents, and returns its organization.
func (g *Guard) checkClient(ctx *fasthttp.RequestCtx, client Credential) (uuid.UUID, error) {
	if client.assertion == nil {
		return g.Store.CheckSecret(web.RequestContext(ctx), client.Agent, client.Secret)
	}
	verified, err := g.verifyClient(ctx, client)
	if err != nil {
		return uuid.Nil, err
	}
	return verified.Keys.Organization, g.Store.CheckAssertion(web.RequestContext(ctx), verified)
}
