package server

import (
	"strconv"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

var overloadedStart, overloadedEnd = []byte(`{"type":"urn:remit:problem:unavailable","title":"` + web.Titles["unavailable"] +
	`","status":503,"detail":"` + web.OverloadedDetail + `","code":"unavailable","request_id":"`), []byte(`"}`)

// answerOverloaded is answerProblem for a shed call. It writes the body without encoding, because under overload it must
// cost little.
func (f *front) answerOverloaded(ctx *fasthttp.RequestCtx, err error) {
	f.metrics.Shed.Add(1)
	f.shed.add(f.log, err)
	a := web.InfoOf(ctx)
	a.Code, a.Shed = "unavailable", true
	id := ctx.Response.Header.Peek(web.HeaderRequestID)
	ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(retryLater))
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
	ctx.Response.AppendBody(overloadedStart)
	ctx.Response.AppendBody(id)
	ctx.Response.AppendBody(overloadedEnd)
}
