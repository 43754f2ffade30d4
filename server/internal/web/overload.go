package web

import (
	"strconv"

	"github.com/valyala/fasthttp"
)

var overloadedStart, overloadedEnd = []byte(`{"type":"urn:remit:problem:unavailable","title":"` + Titles["unavailable"] +
	`","status":503,"detail":"` + OverloadedDetail + `","code":"unavailable","request_id":"`), []byte(`"}`)

// answerOverloaded is AnswerProblem for a shed call. It writes the body without encoding, because under overload it must
// cost little.
func (f *Front) answerOverloaded(ctx *fasthttp.RequestCtx, err error) {
	f.Metrics.shed.Add(1)
	f.Shed.add(f.Log, err)
	a := InfoOf(ctx)
	a.Code, a.Shed = "unavailable", true
	id := ctx.Response.Header.Peek(HeaderRequestID)
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(retryLater))
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
	ctx.Response.AppendBody(overloadedStart)
	ctx.Response.AppendBody(id)
	ctx.Response.AppendBody(overloadedEnd)
}
