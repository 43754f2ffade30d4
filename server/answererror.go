package server

import (
	"errors"
	"runtime/debug"
	"strconv"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// answerProblem answers an error with its problem.
func (s *Server) answerProblem(ctx *fasthttp.RequestCtx, err error) {
	if isOverloaded(err) {
		s.answerOverloaded(ctx, err)
		return
	}
	p := problemOf(err)
	web.InfoOf(ctx).Code = p.Code
	p.RequestID = web.AnsweredID(ctx)
	s.reportFailure(ctx, err, p)
	body, encodeErr := web.Encode(p)
	if encodeErr != nil {
		s.log.Error("problem could not be encoded", "request_id", p.RequestID, "cause", encodeErr.Error())
		body = []byte(`{"code":"` + p.Code + `"}`)
	}
	if p.Status == 401 || p.Code == "insufficient_scope" {
		if challenge := proofChallenge(challengeFor(err, p, s.metadataFor(ctx)), err, web.InfoOf(ctx).Proven); challenge != "" {
			ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, challenge)
		}
	}
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(p.Status)
	ctx.SetBody(body)
}

// reportFailure logs the cause of a server error and sets Retry-After.
func (s *Server) reportFailure(ctx *fasthttp.RequestCtx, err error, p web.Problem) {
	switch {
	case isOverloaded(err):
		s.metrics.shed.Add(1)
		s.shed.add(s.log, err)
	case errors.Is(err, errNoClientKeys), errors.Is(err, errNoIssuerKeys): // a tenant's host fails: jwksfetch logs that, once for each read
	case p.Status >= 500:
		s.log.Error("request failed", "request_id", web.RequestID(ctx), "code", p.Code, "cause", err.Error())
	}
	if seconds := retryAfter(err, p); seconds > 0 {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
	}
}

// answerPanic answers 500 when a handler has panicked. fasthttp would end the process.
func (s *Server) answerPanic(ctx *fasthttp.RequestCtx) {
	cause := recover()
	if cause == nil {
		return
	}
	s.metrics.panics.Inc()
	s.log.Error("handler panicked", "request_id", web.RequestID(ctx), "cause", cause, "stack", string(debug.Stack()))
	s.answerInstead(ctx, web.ErrPanic)
}

// answerInstead replaces the response of a handler with that of an error.
func (s *Server) answerInstead(ctx *fasthttp.RequestCtx, err error) {
	id := web.RequestID(ctx)
	ctx.Response.Reset()
	ctx.Response.Header.Set(web.HeaderRequestID, id)
	ctx.Response.Header.SetCanonical(web.CanonicalSniffing, web.NoSniffing)
	if web.InfoOf(ctx).Proofs > 0 {
		s.offerNonce(ctx)
	}
	if s.pages.have(ctx) && s.pages.Headers != nil {
		s.pages.Headers(&ctx.Response.Header)
	}
	s.answerProblem(ctx, err)
}

func isOverloaded(err error) bool { return errors.Is(err, redisstore.ErrOverloaded) }
