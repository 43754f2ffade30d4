package access

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// Authenticate checks a credential, unless too many like it have failed.
func (g *Guard) Authenticate(ctx *fasthttp.RequestCtx, c Credential, check func() error) error {
	limit := g.FailedAuth
	if limit == nil {
		return check()
	}
	address := g.Front.ClientAddress(ctx)
	if left := limit.check(ctx, address, c); left.Remaining == 0 && !limit.IsKnownGood(c) {
		g.Metrics.limitedTokens.Inc()
		return &web.RateLimited{RetryAfter: left.Reset}
	}
	err := check()
	limit.Record(address, c, err)
	if isWrongCredential(err) {
		limit.check(ctx, address, c)
	}
	return err
}

// RejectCredential counts a credential that was found wrong or malformed without asking the store, and returns err, or a
// RateLimited error.
func (g *Guard) RejectCredential(ctx *fasthttp.RequestCtx, agent uuid.UUID, err error) error {
	return g.Authenticate(ctx, Credential{Agent: agent}, func() error { return err })
}
