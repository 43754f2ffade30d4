package server

import (
	"time"

	"github.com/valyala/fasthttp"
)

// around is what every request passes before and after its own handler.
func (s *Server) around(answer fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		connectionOf(ctx.Conn()).bodyArrived()
		s.beginRequest(ctx)
		defer s.endRequest(ctx)
		defer s.drain.announceClose(ctx)
		defer s.answerPanic(ctx)
		closes, err := checkFraming(&ctx.Request.Header)
		if closes || err != nil {
			ctx.SetConnectionClose()
		}
		if err != nil {
			connectionOf(ctx.Conn()).leaveUnread()
			s.answerProblem(ctx, err)
			return
		}
		answer(ctx)
	}
}

// begin sets what every response carries.
func (s *Server) beginRequest(ctx *fasthttp.RequestCtx) {
	s.metrics.http.inFlight.Inc()
	startInfo(ctx)
	header := &ctx.Response.Header
	var id [maxRequestIDSize]byte
	header.SetBytesV(headerRequestID, s.requests.append(id[:0], ctx))
	header.Set("X-Content-Type-Options", "nosniff")
	if s.tracer != nil {
		s.beginTrace(ctx)
	}
}

// endRequest tells those who watch.
func (s *Server) endRequest(ctx *fasthttp.RequestCtx) {
	info, begun := ctx.UserValue(infoKey{}).(*requestInfo)
	if !begun {
		return
	}
	s.metrics.http.request(ctx, info)
	if info.traced != nil {
		endTrace(ctx, info)
	}
	if s.accessLog != nil && s.accessLog.picks(ctx.Response.StatusCode(), info) {
		s.accessLog.write(ctx, info, s.clientAddress(ctx))
	}
	ctx.RemoveUserValue(infoKey{})
	infoPool.Put(info)
}

// request counts an answered request.
func (c *httpMetrics) request(ctx *fasthttp.RequestCtx, info *requestInfo) {
	c.answered(info.metrics, info.methodIndex(ctx), ctx.Response.StatusCode(), info.code, time.Since(info.began))
}
