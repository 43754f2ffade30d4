package web

import (
	"errors"
	"math"
	"runtime/debug"
	"strconv"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// AnswerProblem answers an error with its problem.
func (f *Front) AnswerProblem(ctx *fasthttp.RequestCtx, err error) {
	if IsOverloaded(err) {
		f.answerOverloaded(ctx, err)
		return
	}
	p := f.Hooks.ProblemOf(err)
	InfoOf(ctx).Code = p.Code
	p.RequestID = AnsweredID(ctx)
	f.ReportFailure(ctx, err, p)
	body, encodeErr := Encode(p)
	if encodeErr != nil {
		f.Log.Error("problem could not be encoded", "request_id", p.RequestID, "cause", encodeErr.Error())
		body = []byte(`{"code":"` + p.Code + `"}`)
	}
	if p.Status == 401 || p.Code == "insufficient_scope" {
		if challenge := f.Hooks.Challenge(ctx, err, p); challenge != "" {
			ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, challenge)
		}
	}
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(p.Status)
	ctx.SetBody(body)
}

// ReportFailure logs the cause of a server error and sets Retry-After.
func (f *Front) ReportFailure(ctx *fasthttp.RequestCtx, err error, p Problem) {
	switch {
	case IsOverloaded(err):
		f.Metrics.shed.Add(1)
		f.Shed.add(f.Log, err)
	case f.Hooks.IsLogged(err):
	case p.Status >= 500:
		f.Log.Error("request failed", "request_id", RequestID(ctx), "code", p.Code, "cause", err.Error())
	}
	if seconds := RetryAfter(err, p); seconds > 0 {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
	}
}

// answerPanic answers 500 when a handler has panicked. fasthttp would end the process.
func (f *Front) answerPanic(ctx *fasthttp.RequestCtx) {
	cause := recover()
	if cause == nil {
		return
	}
	f.Metrics.Panics.Inc()
	f.Log.Error("handler panicked", "request_id", RequestID(ctx), "cause", cause, "stack", string(debug.Stack()))
	f.answerInstead(ctx, ErrPanic)
}

// answerInstead replaces the response of a handler with that of an error.
func (f *Front) answerInstead(ctx *fasthttp.RequestCtx, err error) {
	id := RequestID(ctx)
	ctx.Response.Reset()
	ctx.Response.Header.Set(HeaderRequestID, id)
	ctx.Response.Header.SetCanonical(canonicalSniffing, noSniffing)
	if InfoOf(ctx).Proofs > 0 {
		f.Hooks.OfferNonce(ctx)
	}
	f.Hooks.Decorate(ctx)
	f.AnswerProblem(ctx, err)
}

// IsOverloaded says whether the store shed the call before it was sent.
func IsOverloaded(err error) bool { return errors.Is(err, redisstore.ErrOverloaded) }

// retryLater is the Retry-After, in seconds, when no better value is known.
const retryLater = 1

// proofPause is the Retry-After when an agent has used too many proofs, which are forgotten within minutes.
const proofPause = 60

// RetryAfter returns after how many seconds the same request may succeed, 0 when waiting alone does not help.
func RetryAfter(err error, p Problem) int {
	var limited *RateLimited
	var tooFast *redisstore.RateError
	var agentLimit *redisstore.AgentLimitError
	switch {
	case errors.As(err, &limited):
		return limited.RetryAfter
	case errors.As(err, &tooFast):
		return max(int(math.Ceil(tooFast.RetryAfter.Seconds())), 1)
	case errors.As(err, &agentLimit) && agentLimit.RetryAfter > 0:
		return max(int(math.Ceil(agentLimit.RetryAfter.Seconds())), 1)
	case errors.Is(err, redisstore.ErrManyProofs):
		return proofPause
	case p.Status == 503 || p.Status == 429:
		return retryLater
	}
	return 0
}

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
