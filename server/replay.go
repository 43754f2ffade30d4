package server

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// reportReplay marks a response whose outcome is that of an earlier request. Its body then carries the id of that request
// and is identical to the first response.
func (f *front) reportReplay(ctx *fasthttp.RequestCtx, idempotency *redisstore.Idempotency) {
	if idempotency == nil || idempotency.FirstRequest == "" {
		return
	}
	if idempotency.Replayed {
		f.metrics.Replays.Inc()
		ctx.Response.Header.Set(web.HeaderReplayed, "true")
	}
	web.SetFirstRequest(ctx, idempotency.FirstRequest)
}
