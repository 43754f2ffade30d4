package access

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// ByKey, ByAgent and ByEither adapt a handler to a route: they find out who calls before the handler runs. An API key is checked in
// the operation's own script.

// ByKey adapts a handler of requests with an API key.
func ByKey(h func(*fasthttp.RequestCtx, redisstore.APIKey) error) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		key, err := OrganizationKey(ctx)
		if err != nil {
			return err
		}
		return h(ctx, key)
	}
}

// ByKeyAt is ByKey for a path with an id.
func ByKeyAt(h func(*fasthttp.RequestCtx, redisstore.APIKey, uuid.UUID) error) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		key, id, err := KeyAndID(ctx)
		if err != nil {
			return err
		}
		return h(ctx, key, id)
	}
}

// ByAgent adapts a handler of requests with an access token.
func (g *Guard) ByAgent(h func(*fasthttp.RequestCtx, *CachedToken) error) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		granted, err := g.AgentToken(ctx)
		if err != nil {
			return err
		}
		return h(ctx, granted)
	}
}

// ByAgentAt is ByAgent for a path with an id.
func (g *Guard) ByAgentAt(h func(*fasthttp.RequestCtx, redisstore.AccessToken, uuid.UUID) error) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		granted, id, err := g.AgentAndID(ctx)
		if err != nil {
			return err
		}
		return h(ctx, granted, id)
	}
}

// ByEither adapts a handler of requests with an API key or an access token.
func (g *Guard) ByEither(h func(*fasthttp.RequestCtx, Caller) error) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		caller, err := g.EitherCaller(ctx)
		if err != nil {
			return err
		}
		return h(ctx, caller)
	}
}

// ByEitherAt is ByEither for a path with an id.
func (g *Guard) ByEitherAt(h func(*fasthttp.RequestCtx, Caller, uuid.UUID) error) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		caller, id, err := g.CallerAndID(ctx)
		if err != nil {
			return err
		}
		return h(ctx, caller, id)
	}
}
