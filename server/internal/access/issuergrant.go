package access

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"remit/internal/jwksfetch"
	"remit/internal/metrics"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// grantJWTBearer exchanges a token of a trusted issuer for an access token of an agent (RFC 7523 §2.1).
const grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// mostIssuerKeys is how many keys of a trusted issuer's jwks_uri are used.
const mostIssuerKeys = 64

var (
	// ErrUntrusted refuses an assertion of a trusted issuer, in one text for all causes: a stranger must not learn which issuers an
	// organization trusts. It is counted as a wrong secret is.
	ErrUntrusted = fmt.Errorf("%w: the assertion is not trusted for this client", redisstore.ErrInvalidCredentials)
	// ErrNoIssuerKeys refuses an assertion that a rule gives to the agent, and that cannot be verified now.
	ErrNoIssuerKeys = errors.New("the keys of the assertion's issuer cannot be read now; nothing was issued")
)

// readWorkload reads who asks for a token by an assertion, which is all that authenticates it.
func readWorkload(ctx *fasthttp.RequestCtx, form url.Values) (Credential, error) {
	if len(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)) > 0 || form.Get("client_secret") != "" ||
		form.Get("client_assertion") != "" || form.Get("client_assertion_type") != "" {
		return Credential{}, &OAuthError{"invalid_request", "the assertion authenticates this request: send no other credentials"}
	}
	for _, required := range []string{"client_id", "assertion"} {
		if form.Get(required) == "" {
			return Credential{}, &OAuthError{"invalid_request", required + " is required"}
		}
	}
	agent, isID := web.ParseID(form.Get("client_id"))
	if !isID {
		return Credential{}, ErrUntrusted
	}
	return Credential{Agent: agent, Secret: token.Hash(form.Get("assertion"))}, nil
}

// grantByIssuer serves the jwt-bearer grant. What can be checked without the store is checked first, then whether a rule gives
// the assertion to the agent, and only then is its signature, for which keys may have to be fetched.
func (g *Guard) grantByIssuer(ctx *fasthttp.RequestCtx, agent uuid.UUID, text, audience string, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	assertion, err := readAssertion(text, audience, time.Now())
	if err != nil {
		return redisstore.Grant{}, g.untrusted(err)
	}
	issuer, organization, err := g.Store.IssuerFor(web.RequestContext(ctx), agent, assertion.TrustedIssuer())
	if err != nil {
		return redisstore.Grant{}, g.untrusted(err)
	}
	if !slices.ContainsFunc(issuer.Settings.RulesFor(agent), assertion.Matches) {
		return redisstore.Grant{}, g.untrusted(errNoRule)
	}
	source := jwksfetch.Source{Tenant: organization, URL: issuer.Settings.JWKSURI, MaxKeys: mostIssuerKeys}
	if err := g.verifyAssertion(ctx, assertion, issuer.Settings.JWKS, source); err != nil {
		return redisstore.Grant{}, g.untrusted(err)
	}
	grant, err := g.Store.GrantByIssuer(web.RequestContext(ctx), organization, agent, issuer, asked)
	if err != nil {
		return redisstore.Grant{}, g.untrusted(err)
	}
	g.Metrics.tokensByIssuer.Inc()
	return grant, nil
}

// readAssertion reads a token of a foreign issuer, and checks what needs no key.
func readAssertion(text, audience string, now time.Time) (*token.Assertion, error) {
	assertion, err := token.ParseAssertion(text)
	switch {
	case err != nil:
		return nil, err
	case !assertion.HasType("JWT", "JOSE"):
		return nil, token.ErrMalformed
	case !assertion.IsFor(audience):
		return nil, errOtherAudience
	}
	return assertion, assertion.CheckTimes(now)
}

// IsOfTenantsHost reports that a tenant's host failed: jwksfetch logs that, once for each read.
func IsOfTenantsHost(err error) bool {
	return errors.Is(err, ErrNoClientKeys) || errors.Is(err, ErrNoIssuerKeys)
}

// The causes for which an assertion is not trusted that no other package has an error for.
var (
	errOtherAudience = errors.New("the assertion is for another audience")
	errNoRule        = errors.New("no rule gives the assertion to the agent")
)

// refusalCauses are why assertions are refused, as they are counted; the first that an error is counts. A client learns none of
// them.
var refusalCauses = []struct {
	err   error
	cause string
}{
	{token.ErrMalformed, "malformed"},
	{errOtherAudience, "audience"},
	{token.ErrExpired, "expired"},
	{token.ErrClaims, "claims"},
	{redisstore.ErrUnknownIssuer, "issuer"},
	{errNoRule, "rule"},
	{token.ErrUnknownKey, "key"},
	{token.ErrSignature, "signature"},
	{redisstore.ErrInvalidCredentials, "agent"},
}

// untrusted counts the cause for which an assertion is refused, and returns the refusal. It returns other errors as they are:
// a caller who gets them presented a good assertion, or the store failed.
func (g *Guard) untrusted(err error) error {
	for _, known := range refusalCauses {
		if errors.Is(err, known.err) {
			g.Metrics.assertionsRefused[known.cause].Inc()
			return ErrUntrusted
		}
	}
	if errors.Is(err, jwksfetch.ErrNoKeys) || errors.Is(err, context.DeadlineExceeded) {
		g.Metrics.assertionsRefused[causeNoKeys].Inc()
		return ErrNoIssuerKeys
	}
	return err
}

const causeNoKeys = "no_keys"

func newAssertionsRefused(registry prometheus.Registerer) map[string]prometheus.Counter {
	causes := []string{causeNoKeys}
	for _, known := range refusalCauses {
		causes = append(causes, known.cause)
	}
	refused := map[string]prometheus.Counter{}
	for _, cause := range causes {
		refused[cause] = metrics.Counter(registry, "remit_issuer_tokens_refused_total",
			"Tokens of foreign issuers that were exchanged for nothing, by cause.", prometheus.Labels{"cause": cause})
	}
	return refused
}
