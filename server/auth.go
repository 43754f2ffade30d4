package server

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

const headerAPIKey = "X-Api-Key" // as fasthttp writes names

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

// organizationKey returns the API key that the request carries. Whether it is a live one is for the store to say, in
// the operation; a key that no organization can have is refused here.
func organizationKey(ctx *fasthttp.RequestCtx) (redisstore.APIKey, error) {
	given := string(ctx.Request.Header.Peek(headerAPIKey))
	if given == "" {
		return redisstore.APIKey{}, errMissingKey
	}
	organization, err := token.APIKeyOrganization(given)
	if err != nil {
		return redisstore.APIKey{}, errInvalidKey
	}
	askedOf(ctx).organization = organization
	return redisstore.APIKey{Organization: organization, Hash: token.Hash(given)}, nil
}

// agentToken returns the verified access token that the request carries (RFC 6750 §2.1).
func (s *Server) agentToken(ctx *fasthttp.RequestCtx) (*verified, error) {
	given, found := bearer(ctx)
	if !found {
		return nil, errMissingToken
	}
	access, err := withKey(s, func(v *verifier) (*verified, error) { return v.access(given, time.Now()) })
	if cannotSay(err) {
		return nil, err
	}
	if err != nil {
		return nil, errInvalidToken
	}
	askedBy(ctx, access.Organization, access.Agent)
	if s.store.Suspended(access.Organization) {
		return nil, redisstore.ErrOrganizationSuspended
	}
	return access, nil
}

// eitherCaller returns the organization or the agent that asks. Both at once is refused: nothing says which is meant.
func (s *Server) eitherCaller(ctx *fasthttp.RequestCtx) (caller, error) {
	_, hasToken := bearer(ctx)
	hasKey := len(ctx.Request.Header.Peek(headerAPIKey)) > 0
	switch {
	case hasKey && hasToken:
		return caller{}, invalid("", "send X-API-Key or Authorization, not both")
	case hasKey:
		return keyCaller(ctx)
	case hasToken:
		access, err := s.agentToken(ctx)
		if err != nil {
			return caller{}, err
		}
		return access.caller, nil
	}
	return caller{}, errMissingEither
}

// keyCaller is apart from eitherCaller so that only callers with a key pay for one.
func keyCaller(ctx *fasthttp.RequestCtx) (caller, error) {
	key, err := organizationKey(ctx)
	return caller{Caller: redisstore.Caller{Key: &key}}, err
}

func heldBy(access token.Access) redisstore.AccessToken {
	return redisstore.AccessToken{Organization: access.Organization, Agent: access.Agent, Family: access.Family}
}

// bearer returns the token of an Authorization header with the Bearer scheme, in any case (RFC 9110 §11.1).
func bearer(ctx *fasthttp.RequestCtx) ([]byte, bool) {
	scheme, given, found := bytes.Cut(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization), []byte(" "))
	return given, found && bytes.EqualFold(scheme, []byte("Bearer"))
}
