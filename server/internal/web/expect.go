package web

import (
	"runtime/debug"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// normalizeExpectation makes fasthttp recognize every client that waits for 100 Continue: fasthttp compares
// case-sensitively (RFC 9110 §10.1.1 does not) and would also send it to HTTP/1.0. Then it reserves memory for the body.
func (f *Front) normalizeExpectation(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	defer func() { // fasthttp would end the process
		if cause := recover(); cause != nil {
			f.Metrics.Panics.Inc()
			f.Log.Error("header handler panicked", "cause", cause, "stack", string(debug.Stack()))
		}
	}()
	if expectation := header.PeekCanonical(canonicalExpect); len(expectation) > 0 {
		switch {
		case !header.IsHTTP11():
			header.Del(fasthttp.HeaderExpect)
		case isContinue(expectation):
			header.Set(fasthttp.HeaderExpect, continues)
		}
	}
	return f.reserveBody(ContextOf(header))
}

// answerExpectation refuses a request before its body is sent, when it would be refused afterwards.
func (f *Front) answerExpectation(ctx *fasthttp.RequestCtx) (status int) {
	status = fasthttp.StatusInternalServerError // for a panic
	defer f.answerPanic(ctx)
	f.renewWriteTimeout(ctx)
	_, err := CheckFraming(&ctx.Request.Header)
	if err == nil && ctx.Request.Header.ContentLength() > conn.MaxBody {
		err = ErrBodyTooLarge
	}
	if err == nil && ctx.Request.Header.ContentLength() != conn.Chunked {
		err = conn.Of(ctx.Conn()).NoRoomForBody()
	}
	if err == nil {
		return fasthttp.StatusContinue
	}
	return f.RefuseExpectation(ctx, err)
}

// RefuseExpectation answers an error in place of 100 Continue, and returns its status.
func (f *Front) RefuseExpectation(ctx *fasthttp.RequestCtx, err error) (status int) {
	status = fasthttp.StatusInternalServerError // for a panic
	_ = conn.Of(ctx.Conn()).BodyRefusal()       // err is the reason that the client gets
	f.StartRequest(ctx)
	defer f.FinishRequest(ctx)
	defer f.answerPanic(ctx)
	conn.Of(ctx.Conn()).LeaveUnread()
	f.AnswerProblem(ctx, err)
	return ctx.Response.StatusCode()
}
