package server

import (
	"crypto/tls"
	"errors"
	"math"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// answerProblem writes the answer to an error.
func (s *Server) answerProblem(ctx *fasthttp.RequestCtx, err error) {
	if isOverloaded(err) {
		s.answerOverloaded(ctx, err)
		return
	}
	p := problemOf(err)
	askedOf(ctx).code = p.Code
	p.RequestID = answeredID(ctx)
	s.noteTrouble(ctx, err, p)
	body, encodeErr := json.Marshal(p)
	if encodeErr != nil {
		s.log.Error("problem not encoded", "request_id", p.RequestID, "cause", encodeErr.Error())
		body = []byte(`{"code":"` + p.Code + `"}`)
	}
	if challenge := challengeFor(err, p); challenge != "" {
		ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, challenge)
	}
	ctx.Response.Header.SetContentType("application/problem+json")
	ctx.SetStatusCode(p.Status)
	ctx.SetBody(body)
}

// noteTrouble logs the cause of an error that is ours and says when to try again.
func (s *Server) noteTrouble(ctx *fasthttp.RequestCtx, err error, p problem) {
	switch {
	case isOverloaded(err):
		s.counts.shed.Add(1)
		s.turnedAway.note(s.log, err)
	case p.Status >= 500:
		s.log.Error("request failed", "request_id", requestID(ctx), "code", p.Code, "cause", err.Error())
	}
	if seconds := retryAfter(err, p); seconds > 0 {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(seconds))
	}
}

// retryLater is after how many seconds to come again when nobody can say.
const retryLater = 1

// retryAfter returns the seconds after which the same request may succeed; 0 when waiting alone does not help.
func retryAfter(err error, p problem) int {
	var limited *rateLimited
	var tooFast *redisstore.RateError
	switch {
	case errors.As(err, &limited):
		return limited.retryAfter
	case errors.As(err, &tooFast):
		return max(int(math.Ceil(tooFast.RetryAfter.Seconds())), 1)
	case p.Status == 503 || p.Status == 429:
		return retryLater
	}
	return 0
}

const (
	bearerChallenge = `Bearer realm="remit"`
	keyChallenge    = `APIKey realm="remit", header="X-API-Key"`
)

// challengeFor returns WWW-Authenticate: RFC 6750 §3 for access tokens, and a scheme of our own, which RFC 9110 §11.1
// leaves open, for API keys.
func challengeFor(err error, p problem) string {
	switch {
	case errors.Is(err, errMissingEither):
		return bearerChallenge + ", " + keyChallenge
	case errors.Is(err, errMissingKey), p.Code == "invalid_api_key":
		return keyChallenge
	case p.Code == "invalid_token":
		return bearerChallenge + `, error="invalid_token", error_description="` + p.Detail + `"`
	case p.Code == "insufficient_scope":
		return bearerChallenge + `, error="insufficient_scope", scope="` + quoted(p.RequiredScope) + `"`
	case p.Status == 401:
		return bearerChallenge
	}
	return ""
}

// quoted keeps a scope inside its quotes; a scope that needed it was refused before (RFC 6749 §3.3).
func quoted(scope string) string { return strings.NewReplacer(`\`, "", `"`, "").Replace(scope) }

// answerPanic answers 500 to a request whose handler panicked. fasthttp would end the process.
func (s *Server) answerPanic(ctx *fasthttp.RequestCtx) {
	cause := recover()
	if cause == nil {
		return
	}
	s.counts.panics.Inc()
	s.log.Error("panic in a handler", "request_id", requestID(ctx), "cause", cause, "stack", string(debug.Stack()))
	s.answerInstead(ctx, errPanic)
}

// answerInstead answers an error in place of what the handler has answered.
func (s *Server) answerInstead(ctx *fasthttp.RequestCtx, err error) {
	id := requestID(ctx)
	ctx.Response.Reset()
	ctx.Response.Header.Set(headerRequestID, id)
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	s.answerProblem(ctx, err)
}

// renewWriteTimeout is for what is written before a handler has run: fasthttp leaves the deadline of the last answer, which
// may have been long ago on a connection that is kept.
func (s *Server) renewWriteTimeout(ctx *fasthttp.RequestCtx) {
	_ = ctx.Conn().SetWriteDeadline(time.Now().Add(s.http.WriteTimeout)) // an error means that nothing can be written at all
}

// answerUnreadable answers what fasthttp could not read as a request.
func (s *Server) answerUnreadable(ctx *fasthttp.RequestCtx, err error) {
	s.begin(ctx)
	defer s.endAsked(ctx)
	defer s.answerPanic(ctx)
	askedOf(ctx).unread = true
	s.renewWriteTimeout(ctx)
	connectionOf(ctx.Conn()).leaveUnread()
	noRoom := connectionOf(ctx.Conn()).bodyRefusal()
	var plain tls.RecordHeaderError
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.As(err, &plain) && plain.Conn != nil:
		s.answerPlainHTTP(ctx, plain.Conn)
		return
	case errors.As(err, &small):
		err = errHeadersTooLarge
	case noRoom != nil:
		err = noRoom
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		err = errBodyTooLarge
	case errors.As(err, &network) && network.Timeout(), isSlowChunk(err):
		err = errSlowRequest
	default:
		err = errUnreadable
	}
	s.answerProblem(ctx, err)
}

// isSlowChunk says whether the time was over within the line of a chunk's size: fasthttp keeps the cause as text alone.
func isSlowChunk(err error) bool {
	var broken fasthttp.ErrBrokenChunk
	return errors.As(err, &broken) && strings.HasSuffix(broken.Error(), os.ErrDeadlineExceeded.Error())
}
