package server

import (
	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/server/internal/web"
)

// around adds to a handler what every request needs before and after it.
func (s *Server) around(answer fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		conn.Of(ctx.Conn()).BodyArrived()
		s.startRequest(ctx)
		defer s.finishRequest(ctx)
		defer s.drain.AnnounceClose(ctx)
		defer s.answerPanic(ctx)
		sent, err := web.CheckFraming(&ctx.Request.Header)
		if sent.Close || err != nil {
			ctx.SetConnectionClose()
		}
		if sent.Proofs > 0 {
			web.InfoOf(ctx).Proofs = sent.Proofs
			s.offerNonce(ctx)
		}
		if err != nil {
			conn.Of(ctx.Conn()).LeaveUnread()
			s.answerProblem(ctx, err)
			return
		}
		answer(ctx)
	}
}

// startRequest starts the request's records and sets the headers of every response.
func (s *Server) startRequest(ctx *fasthttp.RequestCtx) {
	s.metrics.http.InFlight.Inc()
	web.StartInfo(ctx)
	header := &ctx.Response.Header
	var id [web.MaxRequestIDSize]byte
	header.SetCanonical(web.CanonicalRequestID, s.requests.Append(id[:0], ctx))
	header.SetCanonical(web.CanonicalSniffing, web.NoSniffing)
	if s.tracer != nil {
		s.beginTrace(ctx)
	}
}

// finishRequest reports the answered request to the metrics, the trace and the access log.
func (s *Server) finishRequest(ctx *fasthttp.RequestCtx) {
	info := web.BegunInfo(ctx)
	if info == nil {
		return
	}
	s.metrics.http.Request(ctx, info)
	if info.Traced != nil {
		endTrace(ctx, info)
	}
	if s.accessLog != nil && s.accessLog.Picks(ctx.Response.StatusCode(), info) {
		s.accessLog.Write(ctx, info, s.clientAddress(ctx))
	}
	info.End(ctx)
}
