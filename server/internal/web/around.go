package web

import (
	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// Around adds to a handler what every request needs before and after it.
func (f *Front) Around(answer fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		conn.Of(ctx.Conn()).BodyArrived()
		f.StartRequest(ctx)
		defer f.FinishRequest(ctx)
		defer f.Drain.AnnounceClose(ctx)
		defer f.answerPanic(ctx)
		sent, err := CheckFraming(&ctx.Request.Header)
		if sent.close || err != nil {
			ctx.SetConnectionClose()
		}
		if sent.proofs > 0 {
			InfoOf(ctx).Proofs = sent.proofs
			f.Hooks.OfferNonce(ctx)
		}
		if err != nil {
			conn.Of(ctx.Conn()).LeaveUnread()
			f.AnswerProblem(ctx, err)
			return
		}
		answer(ctx)
	}
}

// StartRequest starts the request's records and sets the headers of every response.
func (f *Front) StartRequest(ctx *fasthttp.RequestCtx) {
	f.Metrics.InFlight.Inc()
	startInfo(ctx)
	header := &ctx.Response.Header
	var id [MaxRequestIDSize]byte
	header.SetCanonical(CanonicalRequestID, f.requests.Append(id[:0], ctx))
	header.SetCanonical(canonicalSniffing, noSniffing)
	if f.Tracer != nil {
		f.beginTrace(ctx)
	}
}

// FinishRequest reports the answered request to the metrics, the trace and the access log.
func (f *Front) FinishRequest(ctx *fasthttp.RequestCtx) {
	info := begunInfo(ctx)
	if info == nil {
		return
	}
	f.Metrics.Request(ctx, info)
	if info.traced != nil {
		endTrace(ctx, info)
	}
	if f.AccessLog != nil && f.AccessLog.picks(ctx.Response.StatusCode(), info) {
		f.AccessLog.write(ctx, info, f.ClientAddress(ctx))
	}
	info.end(ctx)
}
