package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// authenticate checks a credential, unless too many like it have failed.
func (g *guard) authenticate(ctx *fasthttp.RequestCtx, c credential, check func() error) error {
	limit := g.failedAuth
	if limit == nil {
		return check()
	}
	address := g.front.ClientAddress(ctx)
	if left := limit.check(ctx, address, c); left.remaining == 0 && !limit.isKnownGood(c) {
		g.metrics.limitedTokens.Inc()
		return &web.RateLimited{RetryAfter: left.reset}
	}
	err := check()
	limit.record(address, c, err)
	if isWrongCredential(err) {
		limit.check(ctx, address, c)
	}
	return err
}

// rejectCredential counts a credential that was found wrong or malformed without asking the store, and returns err, or a
// RateLimited error.
func (g *guard) rejectCredential(ctx *fasthttp.RequestCtx, agent uuid.UUID, err error) error {
	return g.authenticate(ctx, credential{agent: agent}, func() error { return err })
}
