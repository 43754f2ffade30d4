package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// exchangeSecret opens a family for a client by its secret.
func (g *guard) exchangeSecret(ctx *fasthttp.RequestCtx, client credential, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	grant, err := g.store.ExchangeSecret(web.RequestContext(ctx), client.agent, client.secret, asked)
	if err == nil {
		g.metrics.tokensBySecret.Inc()
	}
	return grant, err
}

// checkSecret returns the organization of a client with this secret.
func (g *guard) checkSecret(ctx *fasthttp.RequestCtx, client credential) (uuid.UUID, error) {
	return g.store.CheckSecret(web.RequestContext(ctx), client.agent, client.secret)
}
