package server

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

// caller is who asks where an organization and an agent both may.
type caller struct {
	redisstore.Caller
	scopes  []string  // of the access token
	expires time.Time // the access token, for what outlasts a request; zero for an API key
}

// organization returns the organization that asks, or that the agent is of.
func (c caller) organization() uuid.UUID {
	if c.Key != nil {
		return c.Key.Organization
	}
	return c.Token.Organization
}

// patience is how long the caller may wait, if it wants to for so long: not beyond its token.
func (c caller) patience(wanted time.Duration) time.Duration {
	if c.Token == nil {
		return wanted
	}
	return min(wanted, time.Until(c.expires))
}

func (c caller) hasExpired() bool { return c.Token != nil && !time.Now().Before(c.expires) }

// mayUse returns a scopeError unless the caller holds the scope; an organization's key holds all, and "" is none.
func (c caller) mayUse(scope string) error {
	if c.Token == nil || scope == "" || slices.Contains(c.scopes, scope) {
		return nil
	}
	return &scopeError{scope}
}

func heldBy(access token.Access) redisstore.AccessToken {
	return redisstore.AccessToken{Organization: access.Organization, Agent: access.Agent, Family: access.Family}
}

// identity is what a gateway is told of whose request it is.
type identity struct{ agent, organization, scopes string }

func (i identity) tell(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	header.Set("X-Agent-Id", i.agent)
	header.Set("X-Org-Id", i.organization)
	header.Set("X-Scopes", i.scopes)
}
