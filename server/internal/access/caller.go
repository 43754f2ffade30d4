package access

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// Caller is an organization or an agent, for operations that both may call.
type Caller struct {
	redisstore.Caller
	Scopes  []string  // of the access token
	Expires time.Time // of the access token, for what outlasts a request; zero for an API key

	Delegated *redisstore.DelegatedToken // nil for a token of the agent itself, and for an API key
}

// OrganizationID returns the calling organization, or the calling agent's.
func (c Caller) OrganizationID() uuid.UUID {
	if c.Key != nil {
		return c.Key.Organization
	}
	return c.Token.Organization
}

// Patience returns how long the caller may wait: as long as it wants, within the life of its token.
func (c Caller) Patience(wanted time.Duration) time.Duration {
	if c.Token == nil {
		return wanted
	}
	return min(wanted, time.Until(c.Expires))
}

// HasExpired says whether the access token of the caller has expired meanwhile.
func (c Caller) HasExpired() bool { return c.Token != nil && !time.Now().Before(c.Expires) }

// MayUse returns a ScopeError unless the caller holds the scope. An API key holds every scope, and so does a session key: the session's
// own bound both. "" needs none.
func (c Caller) MayUse(scope string) error {
	if c.Token == nil || c.Token.IsSessionKey() || scope == "" || slices.Contains(c.Scopes, scope) {
		return nil
	}
	return &web.ScopeError{Scope: scope}
}

func heldBy(access token.Access) redisstore.AccessToken {
	return redisstore.AccessToken{
		Organization: access.Organization, Agent: access.Agent, Family: access.Family, Session: access.Session, Bound: access.Thumbprint != "",
	}
}

// identity is what a proxy learns about the caller.
type identity struct {
	agent, organization, scopes []byte
	thumbprint                  []byte // of the key that the token is bound to; empty for none
}

func newIdentity(access token.Access) identity {
	return identity{
		redisstore.AppendID(nil, access.Agent), redisstore.AppendID(nil, access.Organization), []byte(strings.Join(access.Scopes, " ")),
		[]byte(access.Thumbprint),
	}
}

// WriteIdentity writes who the caller is, with those of the token's scopes that the agent has left, or all that are left to a session
// key; of a delegated token also which agent acts.
func (c *CachedToken) WriteIdentity(ctx *fasthttp.RequestCtx, left redisstore.ScopesLeft) {
	i := c.identity
	switch {
	case c.Caller.Token.IsSessionKey():
		i.scopes = []byte(left.All())
	case left.Narrowed():
		i.scopes = []byte(strings.Join(left.Of(c.Scopes), " "))
	}
	i.writeHeaders(ctx)
	if c.Caller.Delegated != nil {
		ctx.Response.Header.SetCanonical(web.CanonicalActor, redisstore.AppendID(nil, c.Client))
	}
}

func (i identity) writeHeaders(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	header.SetCanonical(web.CanonicalAgent, i.agent)
	header.SetCanonical(web.CanonicalOrganization, i.organization)
	header.SetCanonical(web.CanonicalScopes, i.scopes)
	if len(i.thumbprint) > 0 {
		header.SetCanonical(web.CanonicalThumbprint, i.thumbprint)
	}
}
