package server

import (
	"runtime/debug"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/server/internal/web"
)

// normalizeExpectation makes fasthttp recognize every client that waits for 100 Continue: fasthttp compares
// case-sensitively (RFC 9110 §10.1.1 does not) and would also send it to HTTP/1.0. Then it reserves memory for the body.
func (f *front) normalizeExpectation(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	defer func() { // fasthttp would end the process
		if cause := recover(); cause != nil {
			f.metrics.Panics.Inc()
			f.log.Error("header handler panicked", "cause", cause, "stack", string(debug.Stack()))
		}
	}()
	if expectation := header.PeekCanonical(web.CanonicalExpect); len(expectation) > 0 {
		switch {
		case !header.IsHTTP11():
			header.Del(fasthttp.HeaderExpect)
		case web.IsContinue(expectation):
			header.Set(fasthttp.HeaderExpect, web.Continues)
		}
	}
	return f.reserveBody(contextOf(header))
}

// answerExpectation refuses a request before its body is sent, when it would be refused afterwards.
func (f *front) answerExpectation(ctx *fasthttp.RequestCtx) (status int) {
	status = fasthttp.StatusInternalServerError // for a panic
	defer f.answerPanic(ctx)
	f.renewWriteTimeout(ctx)
	_, err := web.CheckFraming(&ctx.Request.Header)
	if err == nil && ctx.Request.Header.ContentLength() > conn.MaxBody {
		err = web.ErrBodyTooLarge
	}
	if err == nil && ctx.Request.Header.ContentLength() != conn.Chunked {
		err = conn.Of(ctx.Conn()).NoRoomForBody()
	}
	if err == nil {
		return fasthttp.StatusContinue
	}
	return f.refuseExpectation(ctx, err)
}

func (f *front) refuseExpectation(ctx *fasthttp.RequestCtx, err error) (status int) {
	status = fasthttp.StatusInternalServerError // for a panic
	_ = conn.Of(ctx.Conn()).BodyRefusal()       // err is the reason that the client gets
	f.startRequest(ctx)
	defer f.finishRequest(ctx)
	defer f.answerPanic(ctx)
	conn.Of(ctx.Conn()).LeaveUnread()
	f.answerProblem(ctx, err)
	return ctx.Response.StatusCode()
}
