package access

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// ByKey, ByAgent and ByEither adapt a handler to a route: they find out who calls before the handler runs. An API key is checked in
// the operation's own script. ByKeyAt, ByAgentAt and ByEitherAt are for a path with an id.

// ByKey adapts a handler of requests with an API key.
func ByKey(h func(*fasthttp.RequestCtx, redisstore.APIKey) error) web.Handler {
	return by(OrganizationKey, h)
}

// ByKeyAt is ByKey for a path with an id.
func ByKeyAt(h func(*fasthttp.RequestCtx, redisstore.APIKey, uuid.UUID) error) web.Handler {
	return by(OrganizationKey, withID(h))
}

// ByAgent adapts a handler of requests with an access token.
func (g *Guard) ByAgent(h func(*fasthttp.RequestCtx, *CachedToken) error) web.Handler {
	return by(g.AgentToken, h)
}

// ByAgentAt is ByAgent for a path with an id, and a handler that passes the token to the store alone.
func (g *Guard) ByAgentAt(h func(*fasthttp.RequestCtx, redisstore.AccessToken, uuid.UUID) error) web.Handler {
	return by(g.AgentToken, withID(func(ctx *fasthttp.RequestCtx, granted *CachedToken, id uuid.UUID) error {
		return h(ctx, *granted.Caller.Token, id)
	}))
}

// ByEither adapts a handler of requests with an API key or an access token.
func (g *Guard) ByEither(h func(*fasthttp.RequestCtx, Caller) error) web.Handler {
	return by(g.EitherCaller, h)
}

// ByEitherAt is ByEither for a path with an id.
func (g *Guard) ByEitherAt(h func(*fasthttp.RequestCtx, Caller, uuid.UUID) error) web.Handler {
	return by(g.EitherCaller, withID(h))
}

func by[C any](find func(*fasthttp.RequestCtx) (C, error), h func(*fasthttp.RequestCtx, C) error) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		caller, err := find(ctx)
		if err != nil {
			return err
		}
		return h(ctx, caller)
	}
}

func withID[C any](h func(*fasthttp.RequestCtx, C, uuid.UUID) error) func(*fasthttp.RequestCtx, C) error {
	return func(ctx *fasthttp.RequestCtx, caller C) error {
		id, err := web.PathID(ctx)
		if err != nil {
			return err
		}
		return h(ctx, caller, id)
	}
}
