package web

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// ReportReplay marks a response whose outcome is that of an earlier request. Its body then carries the id of that request
// and is identical to the first response.
func (f *Front) ReportReplay(ctx *fasthttp.RequestCtx, idempotency *redisstore.Idempotency) {
	if idempotency == nil || idempotency.Outcome.FirstRequest == "" {
		return
	}
	if idempotency.IsReplay() {
		f.Metrics.replays.Inc()
		ctx.Response.Header.Set(headerReplayed, "true")
	}
	setFirstRequest(ctx, idempotency.Outcome.FirstRequest)
}
