package access

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// exchangeSecret opens a family for a client by its secret.
func (g *Guard) exchangeSecret(ctx *fasthttp.RequestCtx, client Credential, asked redisstore.GrantRequest) (redisstore.Grant, error) {
	grant, err := g.Store.ExchangeSecret(web.RequestContext(ctx), client.Agent, client.Secret, asked)
	if err == nil {
		g.Metrics.tokensBySecret.Inc()
	}
	return grant, err
}
