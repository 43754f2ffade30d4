package server

import (
	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// around adds to a handler what every request needs before and after it.
func (s *Server) around(answer fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		conn.Of(ctx.Conn()).BodyArrived()
		s.startRequest(ctx)
		defer s.finishRequest(ctx)
		defer s.drain.AnnounceClose(ctx)
		defer s.answerPanic(ctx)
		sent, err := checkFraming(&ctx.Request.Header)
		if sent.close || err != nil {
			ctx.SetConnectionClose()
		}
		if sent.proofs > 0 {
			infoOf(ctx).proofs = sent.proofs
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
	s.metrics.http.inFlight.Inc()
	startInfo(ctx)
	header := &ctx.Response.Header
	var id [maxRequestIDSize]byte
	header.SetCanonical(canonicalRequestID, s.requests.append(id[:0], ctx))
	header.SetCanonical(canonicalSniffing, noSniffing)
	if s.tracer != nil {
		s.beginTrace(ctx)
	}
}

// finishRequest reports the answered request to the metrics, the trace and the access log.
func (s *Server) finishRequest(ctx *fasthttp.RequestCtx) {
	info := begunInfo(ctx)
	if info == nil {
		return
	}
	s.metrics.http.request(ctx, info)
	if info.traced != nil {
		endTrace(ctx, info)
	}
	if s.accessLog != nil && s.accessLog.picks(ctx.Response.StatusCode(), info) {
		s.accessLog.write(ctx, info, s.clientAddress(ctx))
	}
	info.end(ctx)
}
