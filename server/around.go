package server

import (
	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/server/internal/web"
)

// around adds to a handler what every request needs before and after it.
func (f *front) around(answer fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		conn.Of(ctx.Conn()).BodyArrived()
		f.startRequest(ctx)
		defer f.finishRequest(ctx)
		defer f.drain.AnnounceClose(ctx)
		defer f.answerPanic(ctx)
		sent, err := web.CheckFraming(&ctx.Request.Header)
		if sent.Close || err != nil {
			ctx.SetConnectionClose()
		}
		if sent.Proofs > 0 {
			web.InfoOf(ctx).Proofs = sent.Proofs
			f.hooks.offerNonce(ctx)
		}
		if err != nil {
			conn.Of(ctx.Conn()).LeaveUnread()
			f.answerProblem(ctx, err)
			return
		}
		answer(ctx)
	}
}

// startRequest starts the request's records and sets the headers of every response.
func (f *front) startRequest(ctx *fasthttp.RequestCtx) {
	f.metrics.InFlight.Inc()
	web.StartInfo(ctx)
	header := &ctx.Response.Header
	var id [web.MaxRequestIDSize]byte
	header.SetCanonical(web.CanonicalRequestID, f.requests.Append(id[:0], ctx))
	header.SetCanonical(web.CanonicalSniffing, web.NoSniffing)
	if f.tracer != nil {
		f.beginTrace(ctx)
	}
}

// finishRequest reports the answered request to the metrics, the trace and the access log.
func (f *front) finishRequest(ctx *fasthttp.RequestCtx) {
	info := web.BegunInfo(ctx)
	if info == nil {
		return
	}
	f.metrics.Request(ctx, info)
	if info.Traced != nil {
		endTrace(ctx, info)
	}
	if f.accessLog != nil && f.accessLog.Picks(ctx.Response.StatusCode(), info) {
		f.accessLog.Write(ctx, info, f.clientAddress(ctx))
	}
	info.End(ctx)
}
