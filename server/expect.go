package server

import (
	"runtime/debug"

	"github.com/valyala/fasthttp"
)

// settleExpectation tells fasthttp which clients wait for 100 Continue before they send their body: it knows one spelling
// (RFC 9110 §10.1.1: any case), and not that HTTP/1.0 has no such answer.
func (s *Server) settleExpectation(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	defer func() { // fasthttp would end the process
		if cause := recover(); cause != nil {
			s.counts.panics.Inc()
			s.log.Error("panic in a header", "cause", cause, "stack", string(debug.Stack()))
		}
	}()
	if expectation := header.Peek(fasthttp.HeaderExpect); len(expectation) > 0 {
		switch {
		case !header.IsHTTP11():
			header.Del(fasthttp.HeaderExpect)
		case isContinue(expectation):
			header.Set(fasthttp.HeaderExpect, continues)
		}
	}
	return s.admitBody(contextOf(header))
}

// answerExpectation refuses before the body is sent what would be refused behind it.
func (s *Server) answerExpectation(ctx *fasthttp.RequestCtx) (status int) {
	status = fasthttp.StatusInternalServerError // of a panic
	defer s.answerPanic(ctx)
	s.renewWriteTimeout(ctx)
	_, err := checkFraming(&ctx.Request.Header)
	if err == nil && ctx.Request.Header.ContentLength() > maxBody {
		err = errBodyTooLarge
	}
	if c := connectionOf(ctx.Conn()); err == nil && c != nil && ctx.Request.Header.ContentLength() != chunked {
		err = c.noRoom
	}
	if err == nil {
		return fasthttp.StatusContinue
	}
	return s.refuseExpectation(ctx, err)
}

func (s *Server) refuseExpectation(ctx *fasthttp.RequestCtx, err error) (status int) {
	status = fasthttp.StatusInternalServerError // of a panic
	_ = connectionOf(ctx.Conn()).bodyRefusal()  // the client has the reason from err
	s.begin(ctx)
	defer s.endAsked(ctx)
	defer s.answerPanic(ctx)
	connectionOf(ctx.Conn()).leaveUnread()
	s.answerProblem(ctx, err)
	return ctx.Response.StatusCode()
}
