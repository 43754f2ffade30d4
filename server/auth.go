package server

import (
	"bytes"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

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

// bearer returns the token of an Authorization header with the Bearer scheme, in any case (RFC 9110 §11.1).
func bearer(ctx *fasthttp.RequestCtx) ([]byte, bool) {
	scheme, given, found := bytes.Cut(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization), []byte(" "))
	return given, found && bytes.EqualFold(scheme, []byte("Bearer"))
}

// callerAndID returns who asks and the id in the path.
func (s *Server) callerAndID(ctx *fasthttp.RequestCtx) (caller, uuid.UUID, error) {
	asks, err := s.eitherCaller(ctx)
	if err != nil {
		return caller{}, uuid.Nil, err
	}
	id, err := pathID(ctx)
	return asks, id, err
}

// keyAndID returns the API key and the id in the path.
func keyAndID(ctx *fasthttp.RequestCtx) (redisstore.APIKey, uuid.UUID, error) {
	key, err := organizationKey(ctx)
	if err != nil {
		return redisstore.APIKey{}, uuid.Nil, err
	}
	id, err := pathID(ctx)
	return key, id, err
}

// agentAndID returns the access token of the agent that asks, and the id in the path.
func (s *Server) agentAndID(ctx *fasthttp.RequestCtx) (redisstore.AccessToken, uuid.UUID, error) {
	access, err := s.agentToken(ctx)
	if err != nil {
		return redisstore.AccessToken{}, uuid.Nil, err
	}
	id, err := pathID(ctx)
	return *access.caller.Token, id, err
}
