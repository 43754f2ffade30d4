package server

import (
	"time"

	"github.com/valyala/fasthttp"
)

// around is what every request passes before and after its own handler.
func (s *Server) around(answer fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		connectionOf(ctx.Conn()).bodyArrived()
		s.begin(ctx)
		defer s.endAsked(ctx)
		defer s.drain.tell(ctx)
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
func (s *Server) begin(ctx *fasthttp.RequestCtx) {
	s.counts.requests.inFlight.Inc()
	beginAsked(ctx)
	header := &ctx.Response.Header
	var id [maxRequestIDSize]byte
	header.SetBytesV(headerRequestID, s.requests.append(id[:0], ctx))
	header.Set("X-Content-Type-Options", "nosniff")
	if s.tracer != nil {
		s.beginTrace(ctx)
	}
}

// endAsked tells those who watch.
func (s *Server) endAsked(ctx *fasthttp.RequestCtx) {
	a, begun := ctx.UserValue(askedKey{}).(*asked)
	if !begun {
		return
	}
	s.counts.requests.request(ctx, a)
	if a.traced != nil {
		endTrace(ctx, a)
	}
	if s.accessLog != nil && s.accessLog.picks(ctx.Response.StatusCode(), a) {
		s.accessLog.write(ctx, a, s.clientAddress(ctx))
	}
	ctx.RemoveUserValue(askedKey{})
	askedPool.Put(a)
}

// request counts an answered request.
func (c *requestCounts) request(ctx *fasthttp.RequestCtx, a *asked) {
	c.answered(a.counts, a.methodPlace(ctx), ctx.Response.StatusCode(), a.code, time.Since(a.began))
}
