package server

import (
	"errors"
	"math"
	"runtime/debug"
	"strconv"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// answerProblem answers an error with its problem.
func (f *front) answerProblem(ctx *fasthttp.RequestCtx, err error) {
	if isOverloaded(err) {
		f.answerOverloaded(ctx, err)
		return
	}
	p := f.hooks.problemOf(err)
	web.InfoOf(ctx).Code = p.Code
	p.RequestID = web.AnsweredID(ctx)
	f.reportFailure(ctx, err, p)
	body, encodeErr := web.Encode(p)
	if encodeErr != nil {
		f.log.Error("problem could not be encoded", "request_id", p.RequestID, "cause", encodeErr.Error())
		body = []byte(`{"code":"` + p.Code + `"}`)
	}
	if p.Status == 401 || p.Code == "insufficient_scope" {
		if challenge := f.hooks.challenge(ctx, err, p); challenge != "" {
			ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, challenge)
		}
	}
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(p.Status)
	ctx.SetBody(body)
}

// reportFailure logs the cause of a server error and sets Retry-After.
func (f *front) reportFailure(ctx *fasthttp.RequestCtx, err error, p web.Problem) {
	switch {
	case isOverloaded(err):
		f.metrics.Shed.Add(1)
		f.shed.add(f.log, err)
	case f.hooks.isLogged(err):
	case p.Status >= 500:
		f.log.Error("request failed", "request_id", web.RequestID(ctx), "code", p.Code, "cause", err.Error())
	}
	if seconds := retryAfter(err, p); seconds > 0 {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
	}
}

// answerPanic answers 500 when a handler has panicked. fasthttp would end the process.
func (f *front) answerPanic(ctx *fasthttp.RequestCtx) {
	cause := recover()
	if cause == nil {
		return
	}
	f.metrics.Panics.Inc()
	f.log.Error("handler panicked", "request_id", web.RequestID(ctx), "cause", cause, "stack", string(debug.Stack()))
	f.answerInstead(ctx, web.ErrPanic)
}

// answerInstead replaces the response of a handler with that of an error.
func (f *front) answerInstead(ctx *fasthttp.RequestCtx, err error) {
	id := web.RequestID(ctx)
	ctx.Response.Reset()
	ctx.Response.Header.Set(web.HeaderRequestID, id)
	ctx.Response.Header.SetCanonical(web.CanonicalSniffing, web.NoSniffing)
	if web.InfoOf(ctx).Proofs > 0 {
		f.hooks.offerNonce(ctx)
	}
	f.hooks.decorate(ctx)
	f.answerProblem(ctx, err)
}

func isOverloaded(err error) bool { return errors.Is(err, redisstore.ErrOverloaded) }

// retryLater is the Retry-After, in seconds, when no better value is known.
const retryLater = 1

// proofPause is the Retry-After when an agent has used too many proofs, which are forgotten within minutes.
const proofPause = 60

// RetryAfter returns after how many seconds the same request may succeed, 0 when waiting alone does not help.
func retryAfter(err error, p web.Problem) int {
	var limited *web.RateLimited
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
